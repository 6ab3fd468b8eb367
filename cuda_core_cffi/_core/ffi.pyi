# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
from typing import Any, TypeAlias

from _cffi_backend import _CDataBase

CData: TypeAlias = _CDataBase

ffi: Any
lib: Any
