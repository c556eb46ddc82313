/*
 * Lets libseccomp compile filters for the test beside it. Commands are lines on standard input, words with one blank
 * between; what answers there are go to standard output.
 *
 *   filter DEFAULT TREE ARCH...        begins a filter; TREE is 1 for binary search, numbers are decimal
 *   rule ACTION NAME [ARG OP A B]...   adds a rule; OP is an enum scmp_compare
 *   export                             "refused ERRNO", or "program N" and N lines, each an instruction as 16 hex digits,
 *                                      byte for byte as in memory on the first ARCH
 *   number ARCH NAME                   "number N", negative for none or for multiplexed calls
 *   name ARCH NUMBER                   "name NAME", or "name -"
 *
 * Some rules make libseccomp 2.5 and 2.6 loop for ever, so SIGALRM ends the program 10 seconds after a "filter".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static scmp_filter_ctx filter;
static int failed; /* 0 or the error number of the first call that failed */

static char *word(void) {
    return strtok(NULL, " \n");
}

static uint64_t number(void) {
    char *text = word();
    return text ? strtoull(text, NULL, 10) : 0;
}

static void check(int result) {
    if (result < 0 && !failed)
        failed = -result;
}

static void begin(void) {
    uint32_t action = number();
    int tree = number();
    char *arch;

    alarm(10);
    seccomp_release(filter);
    failed = 0;
    filter = seccomp_init(action);
    if (!filter) {
        failed = EINVAL;
        return;
    }
    check(seccomp_arch_remove(filter, SCMP_ARCH_NATIVE));
    while ((arch = word()))
        check(seccomp_arch_add(filter, seccomp_arch_resolve_name(arch)));
    if (tree)
        check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2));
}

static void rule(void) {
    uint32_t action = number();
    int call = seccomp_syscall_resolve_name(word());
    struct scmp_arg_cmp args[6];
    unsigned count = 0;
    char *arg;

    if (!filter || failed || call == __NR_SCMP_ERROR)
        return;
    while (count < 6 && (arg = word())) {
        args[count].arg = strtoul(arg, NULL, 10);
        args[count].op = number();
        args[count].datum_a = number();
        args[count].datum_b = number();
        count++;
    }
    check(seccomp_rule_add_array(filter, action, call, count, args));
}

static void export(void) {
    unsigned char insn[8];
    int fd = memfd_create("program", 0);
    off_t length;

    if (filter && !failed)
        check(seccomp_export_bpf(filter, fd));
    if (failed) {
        printf("refused %d\n", failed);
    } else {
        length = lseek(fd, 0, SEEK_END);
        lseek(fd, 0, SEEK_SET);
        printf("program %d\n", (int)(length / 8));
        while (read(fd, insn, sizeof(insn)) == sizeof(insn)) {
            for (unsigned i = 0; i < sizeof(insn); i++)
                printf("%02x", insn[i]);
            putchar('\n');
        }
    }
    close(fd);
    fflush(stdout);
    alarm(0);
}

int main(void) {
    char *line = NULL;
    size_t size = 0;

    /* All that this version can do, whatever the kernel of this machine says: nothing gets loaded. */
    seccomp_api_set(6);
    while (getline(&line, &size, stdin) > 0) {
        char *command = strtok(line, " \n");

        if (!command) {
            continue;
        } else if (!strcmp(command, "filter")) {
            begin();
        } else if (!strcmp(command, "rule")) {
            rule();
        } else if (!strcmp(command, "export")) {
            export();
        } else if (!strcmp(command, "number")) {
            uint32_t arch = seccomp_arch_resolve_name(word());

            printf("number %d\n", arch ? seccomp_syscall_resolve_name_arch(arch, word()) : __NR_SCMP_ERROR);
            fflush(stdout);
        } else if (!strcmp(command, "name")) {
            uint32_t arch = seccomp_arch_resolve_name(word());
            char *text = word();
            char *name = arch && text ? seccomp_syscall_resolve_num_arch(arch, atoi(text)) : NULL;

            printf("name %s\n", name ? name : "-");
            free(name);
            fflush(stdout);
        } else {
            return 2;
        }
    }
    return 0;
}
