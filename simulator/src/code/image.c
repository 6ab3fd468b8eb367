// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What a program hands over as code: telling PTX text from the rest, and loading it.

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/device.h"
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

// What the linker makes says so in the bytes of the header that ELF leaves unused.
static const char linked[EI_NIDENT - EI_PAD] = "simptx";

// It starts like this; the text follows.
struct linked_image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[3];  // none, the text, the names of sections
    char names[16];
};

const size_t sim_image_least = sizeof(struct linked_image);

enum { ABI_OF_CUDA_13 = 8, ARCH_SHIFT = 8 };  // where a cubin has its architecture

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

static CUresult find_linked(const unsigned char *elf, const char **text, size_t *length)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;
    memcpy(&header, elf, sizeof header);
    if (header.e_machine != EM_CUDA)
        return CUDA_ERROR_INVALID_IMAGE;
    if (memcmp(header.e_ident + EI_PAD, linked, sizeof linked) != 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    memcpy(&section, elf + offsetof(struct linked_image, sections[1]), sizeof section);
    if (header.e_shoff != offsetof(struct linked_image, sections) || section.sh_offset != sizeof(struct linked_image))
        return CUDA_ERROR_INVALID_IMAGE;
    *text = (const char *)elf + section.sh_offset;
    *length = section.sh_size;
    return CUDA_SUCCESS;
}

void *sim_image_make(const char *text, size_t length, size_t *size)
{
    struct linked_image start = {.names = "\0.ptx\0.names"};
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
        .e_shstrndx = 2,
    };
    start.header.e_ident[EI_ABIVERSION] = ABI_OF_CUDA_13;
    memcpy(start.header.e_ident + EI_PAD, linked, sizeof linked);
    start.sections[1] = (Elf64_Shdr){
        .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = sizeof start, .sh_size = length, .sh_addralign = 1};
    start.sections[2] = (Elf64_Shdr){.sh_name = 6,
                                     .sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct linked_image, names),
                                     .sh_size = sizeof start.names,
                                     .sh_addralign = 1};
    *size = sizeof start + length;
    char *image = malloc(*size);
    if (image) {
        memcpy(image, &start, sizeof start);
        memcpy(image + sizeof start, text, length);
    }
    return image;
}

CUresult sim_image_find(const void *image, const char **text, size_t *length)
{
    static const unsigned char wrapper[] = {0xb1, 0x43, 0x62, 0x46};
    const unsigned char *bytes = image;
    SIM_REQUIRE(image);
    if (memcmp(bytes, fatbin_magic, sizeof fatbin_magic) == 0)
        return find_ptx(image, text, length);
    if (memcmp(bytes, wrapper, sizeof wrapper) == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (memcmp(bytes, ELFMAG, SELFMAG) == 0)
        return find_linked(bytes, text, length);
    if (!is_ptx(image))
        return CUDA_ERROR_INVALID_IMAGE;
    *text = image;
    *length = strlen(image);
    return CUDA_SUCCESS;
}

static bool is_cut_short(const char *data, size_t size)
{
    struct fatbin header;
    memcpy(&header, data, sizeof header);
    return memcmp(header.magic, fatbin_magic, sizeof fatbin_magic) == 0 &&
           (size < sizeof header || size < header.header_size || size - header.header_size < header.size);
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
            status = is_cut_short(*data, (size_t)size) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
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
