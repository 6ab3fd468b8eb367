// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What NVML is asked again and again, as the modules that ask hand it on.
#ifndef CCC_NVML_QUESTION_H
#define CCC_NVML_QUESTION_H

// How a function of NVML is called: its parameters, where an object is a handle, and where it writes what it answers.
typedef enum ccc_nvml_form {
    CCC_NVML_OUTPUT,         // (object, output *)
    CCC_NVML_OUTPUT_OF,      // (object, unsigned int, output *)
    CCC_NVML_OUTPUT_OF_TWO,  // (object, unsigned int, unsigned int, output *)
    CCC_NVML_TEXT,           // (object, char *, unsigned int size)
    CCC_NVML_PAIR,           // (object, unsigned int *, unsigned int *)
    CCC_NVML_TOTAL,          // (unsigned int *)
    CCC_NVML_SYSTEM_TEXT,    // (char *, unsigned int size)
} ccc_nvml_form;

// A question: a function, and what answers it.
typedef struct ccc_nvml_question {
    ccc_nvml_form form;
    unsigned int function;  // its number
    unsigned int version;   // of the structure, whose first member it is; 0: it states none
    unsigned int size;      // of the answer, in bytes
} ccc_nvml_question;

#endif
