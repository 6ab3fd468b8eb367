// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What a program hands over as code: telling PTX text from the rest, and loading it.

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/device.h"
#include "driver/logs.h"
#include "memory/memory.h"
#include "texture/objects.h"
#include "code/module.h"

enum { LOG = 1024, FATBIN_PTX = 1, FATBIN_COMPRESSED = 0xa000 };

static const unsigned char fatbin_magic[] = {0x50, 0xed, 0x55, 0xba};

// A fat binary: this, then its parts.
struct fatbin {
    unsigned char magic[4];
    uint16_t version, header_size;
    uint64_t size;
};

// The code for one architecture: this, then the code.
struct fatbin_part {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, options;
    uint16_t minor, major;
    uint32_t arch, name_offset, name_size;
    uint64_t flags, reserved, decompressed_size;
};

// A cubin with PTX behind it says so in bytes of its header that ELF leaves unused: these three, and then, in four
// more, where the PTX begins. A GPU driver reads neither.
static const char carries[] = {'p', 't', 'x'};
enum { CARRIED_AT = EI_PAD + sizeof carries };

// This, and then the texts, each but the last with a NUL behind it.
struct carried {
    char magic[8];
    uint64_t length;
};

static const char carried_magic[8] = "simptx";

// The cubin that the linker makes, which has no machine code.
struct linked_image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2];  // none, and the names of sections
    char names[8];
    struct carried carried;
};

enum { ABI_OF_CUDA_13 = 8, ARCH_SHIFT = 8, ARCH_MASK = 0xff };  // where a cubin has its architecture

// --- Options --------------------------------------------------------------------------------------------------

CUresult sim_jit_read(struct sim_jit *jit, unsigned count, CUjit_option *options, void **values)
{
    *jit = (struct sim_jit){0};
    SIM_REQUIRE(!count || (options && values));
    for (unsigned i = 0; i < count; i++) {
        switch ((int)options[i]) {
        case CU_JIT_ERROR_LOG_BUFFER: jit->error.text = values[i]; break;
        case CU_JIT_INFO_LOG_BUFFER: jit->info.text = values[i]; break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            jit->error.size = (unsigned)(uintptr_t)values[i];
            jit->error.used_out = &values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            jit->info.size = (unsigned)(uintptr_t)values[i];
            jit->info.used_out = &values[i];
            break;
        case CU_JIT_WALL_TIME: jit->wall_time_out = (float *)&values[i]; break;
        default: SIM_REQUIRE((unsigned)options[i] < CU_JIT_NUM_OPTIONS);
        }
    }
    return CUDA_SUCCESS;
}

void sim_log_add(struct sim_log *log, const char *text)
{
    if (log->text && log->size) {
        size_t left = log->size - log->used - 1, length = strlen(text);
        if (length > left)
            length = left;
        memcpy(log->text + log->used, text, length);
        log->used += length;
        log->text[log->used] = '\0';
    }
    if (log->used_out)
        *log->used_out = (void *)log->used;
}

// --- Kinds of images ------------------------------------------------------------------------------------------

static const char *skip_blanks_and_comments(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (text[0] == '/' && text[1] == '/')
            text += strcspn(text, "\n");
        else if (text[0] == '/' && text[1] == '*') {
            const char *end = strstr(text + 2, "*/");
            text = end ? end + 2 : text + strlen(text);
        } else
            return text;
    }
}

static bool is_ptx(const char *text)
{
    return strncmp(skip_blanks_and_comments(text), ".version", strlen(".version")) == 0;
}

// The PTX in a fat binary that this device can run, of the newest architecture. The sizes in it are believed, as by a
// real driver; what is compressed is passed over.
static CUresult find_ptx(const char *image, const char **text, size_t *length)
{
    struct fatbin fatbin;
    memcpy(&fatbin, image, sizeof fatbin);
    const char *part = image + fatbin.header_size, *end = part + fatbin.size;
    uint32_t best = 0, capability = (uint32_t)(10 * sim_config()->major + sim_config()->minor);
    while (end - part > (ptrdiff_t)sizeof(struct fatbin_part)) {
        struct fatbin_part found;
        memcpy(&found, part, sizeof found);
        const char *code = part + found.header_size;
        if (found.header_size < sizeof found || code >= end || found.size > (uint64_t)(end - code))
            break;
        bool usable = found.kind == FATBIN_PTX && !(found.flags & FATBIN_COMPRESSED) && found.arch <= capability;
        size_t size = strnlen(code, found.size);
        if (usable && found.arch > best && size < found.size && is_ptx(code)) {
            best = found.arch;
            *text = code;
            *length = size;
        }
        part = code + found.size;
    }
    return best ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// Where the PTX of a cubin begins, or 0: none.
static uint32_t carried_at(const unsigned char *elf)
{
    uint32_t offset;
    memcpy(&offset, elf + CARRIED_AT, sizeof offset);
    return memcmp(elf + EI_PAD, carries, sizeof carries) == 0 ? offset : 0;
}

static unsigned arch_of(const Elf64_Ehdr *header)
{
    return header->e_flags >> (header->e_ident[EI_ABIVERSION] >= ABI_OF_CUDA_13 ? ARCH_SHIFT : 0) & ARCH_MASK;
}

// Tells why an image is refused, in the log of the call if it has any.
static void explain(struct sim_jit *jit, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void explain(struct sim_jit *jit, const char *format, ...)
{
    char text[LOG];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (jit && jit->error.text)
        sim_log_add(&jit->error, text);
    else if (jit)
        sim_log("%s", text);
}

static CUresult find_carried(const unsigned char *elf, struct sim_jit *jit, const char **text, size_t *length)
{
    Elf64_Ehdr header;
    struct carried carried;
    memcpy(&header, elf, sizeof header);
    if (header.e_machine != EM_CUDA)
        return CUDA_ERROR_INVALID_IMAGE;
    unsigned arch = arch_of(&header), major = (unsigned)sim_config()->major, minor = (unsigned)sim_config()->minor;
    if (arch / 10 != major || arch % 10 > minor) {
        explain(jit, "a cubin of sm_%u does not run on a device of sm_%u%u", arch, major, minor);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    uint32_t offset = carried_at(elf);
    if (!offset) {
        explain(jit,
                "a cubin of sm_%u on the simulated driver: it runs PTX only, and this cubin has none beside its "
                "machine code; compile it while the simulated driver is in use, or to PTX",
                arch);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    memcpy(&carried, elf + offset, sizeof carried);
    if (memcmp(carried.magic, carried_magic, sizeof carried_magic) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    *text = (const char *)elf + offset + sizeof carried;
    *length = carried.length;
    return CUDA_SUCCESS;
}

void *sim_image_make(const char *text, size_t length, size_t *size)
{
    struct linked_image start = {.names = "\0.names", .carried = {.length = length}};
    uint32_t offset = offsetof(struct linked_image, carried);
    start.header = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_CUDA,
        .e_version = EV_CURRENT,
        .e_flags = (Elf64_Word)(10 * sim_config()->major + sim_config()->minor) << ARCH_SHIFT,
        .e_shoff = offsetof(struct linked_image, sections),
        .e_ehsize = sizeof start.header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SIM_COUNT(start.sections),
        .e_shstrndx = 1,
    };
    start.header.e_ident[EI_ABIVERSION] = ABI_OF_CUDA_13;
    memcpy(start.header.e_ident + EI_PAD, carries, sizeof carries);
    memcpy(start.header.e_ident + CARRIED_AT, &offset, sizeof offset);
    start.sections[1] = (Elf64_Shdr){.sh_name = 1,
                                     .sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct linked_image, names),
                                     .sh_size = sizeof start.names,
                                     .sh_addralign = 1};
    memcpy(start.carried.magic, carried_magic, sizeof carried_magic);
    *size = sizeof start + length;
    char *image = malloc(*size);
    if (image) {
        memcpy(image, &start, sizeof start);
        memcpy(image + sizeof start, text, length);
    }
    return image;
}

CUresult sim_image_find(const void *image, struct sim_jit *jit, const char **text, size_t *length)
{
    static const unsigned char wrapper[] = {0xb1, 0x43, 0x62, 0x46};
    const unsigned char *bytes = image;
    SIM_REQUIRE(image);
    if (memcmp(bytes, fatbin_magic, sizeof fatbin_magic) == 0) {
        CUresult status = find_ptx(image, text, length);
        if (status == CUDA_ERROR_NO_BINARY_FOR_GPU)
            explain(jit, "a fatbin on the simulated driver: it runs PTX only, and there is none for this device in it");
        return status;
    }
    if (memcmp(bytes, wrapper, sizeof wrapper) == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (memcmp(bytes, ELFMAG, SELFMAG) == 0)
        return find_carried(bytes, jit, text, length);
    if (!is_ptx(image))
        return CUDA_ERROR_INVALID_IMAGE;
    *text = image;
    *length = strlen(image);
    return CUDA_SUCCESS;
}

bool sim_image_is_cut_short(const void *image, size_t size)
{
    const unsigned char *bytes = image;
    if (size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0) {
        struct carried carried;
        size_t start = size < sizeof(Elf64_Ehdr) ? SIZE_MAX : carried_at(bytes);
        if (!start || start > size || size - start < sizeof carried)
            return start;
        memcpy(&carried, bytes + start, sizeof carried);
        return size - start - sizeof carried < carried.length;
    }
    struct fatbin header;
    if (size < sizeof header.magic || memcmp(bytes, fatbin_magic, sizeof fatbin_magic) != 0)
        return false;
    if (size < sizeof header)
        return true;
    memcpy(&header, bytes, sizeof header);
    return size < header.header_size || size - header.header_size < header.size;
}

CUresult sim_image_read_file(const char *path, char **data, size_t *length)
{
    SIM_REQUIRE(path);
    FILE *file = fopen(path, "rb");
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult status = CUDA_ERROR_FILE_NOT_FOUND;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        // Padded with zeros, so that text ends and short files can be looked at as any image.
        *data = size >= 0 ? calloc(1, (size_t)size + sizeof(Elf64_Ehdr)) : NULL;
        if (length)
            *length = (size_t)size;
        if (*data && fread(*data, 1, (size_t)size, file) == (size_t)size)
            status = sim_image_is_cut_short(*data, (size_t)size) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
        if (status != CUDA_SUCCESS)
            free(*data);
    }
    fclose(file);
    return status;
}

// --- Loading --------------------------------------------------------------------------------------------------

static int new_variable(void *context, size_t size, size_t align, uint64_t *address)
{
    (void)align;  // allocations are aligned to more than any variable asks for
    uintptr_t memory;
    CUresult status = sim_memory_new_global(context, size, &memory);
    *address = memory;
    return (int)status;
}

static void free_variable(void *context, uint64_t address)
{
    (void)context;
    sim_memory_free_global(address);
}

static int check_access(void *context, uint64_t address, size_t size, int is_write, uint64_t range[2])
{
    return sim_check_kernel_access(context, address, size, is_write, range);
}

static CUresult check_target(const sim_ptx_module *image, char *log)
{
    const sim_ptx_entry *entry = sim_ptx_entry_at(image, 0);
    unsigned capability = (unsigned)(10 * sim_config()->major + sim_config()->minor);
    if (!entry || entry->target_sm <= capability)
        return CUDA_SUCCESS;
    snprintf(log, LOG, "the text is for sm_%u, the device is sm_%u", entry->target_sm, capability);
    return CUDA_ERROR_INVALID_PTX;
}

CUresult sim_image_load(const char *text, size_t length, struct sim_context *context, struct sim_jit *jit,
                        sim_ptx_module **image)
{
    sim_ptx_host host = {.epoch = &sim_allocation_epoch};
    if (context) {
        host.ctx = context;
        host.alloc = new_variable;
        host.release = free_variable;
        host.check = check_access;
        host.texture = sim_texture_for_kernel;
        host.surface = sim_surface_for_kernel;
    }
    char log[LOG] = "";
    uint64_t start = sim_now_ns();
    CUresult status = (CUresult)sim_ptx_load(text, length, &host, image, log, sizeof log);
    if (status == CUDA_SUCCESS) {
        status = check_target(*image, log);
        if (status != CUDA_SUCCESS)
            sim_ptx_unload(*image);
    }
    if (jit) {
        if (jit->wall_time_out)
            *jit->wall_time_out = (float)(sim_now_ns() - start) / 1e6f;
        sim_log_add(&jit->error, status == CUDA_SUCCESS ? "" : log);
        sim_log_add(&jit->info, status == CUDA_SUCCESS ? log : "");
    }
    return status;
}
