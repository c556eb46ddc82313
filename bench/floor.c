/* What the kernel costs: asks it for exactly what a configuration wants, in the cheapest order known, and for nothing else.
 *
 *   floor run ROOTFS CGROUP     as `run` of the default configuration with /bin/true; makes and removes the cgroup directory
 *   floor exec PID CGROUP       as `exec` of /bin/true in the container whose first process this is
 *
 * No configuration is read, nothing is recorded, nothing is checked against a hostile image and nothing protects the host's
 * program: a runtime has to do all that on top. Measures what `make bench` compares with; of no other use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call) check((long)(call), #call, __LINE__)

static long check(long result, const char *call, int line)
{
    if (result < 0) {
        dprintf(2, "floor.c:%d: %s: %s\n", line, call, strerror(errno));
        _exit(99);
    }
    return result;
}

/* The numbers of the mount calls' flags, which old headers lack. */
enum { FSOPEN_CLOEXEC_ = 1, FSCONFIG_FLAG = 0, FSCONFIG_STRING = 1, FSCONFIG_CREATE = 6, FSMOUNT_CLOEXEC_ = 1 };
enum { RDONLY = 1, NOSUID = 2, NODEV = 4, NOEXEC = 8, STRICTATIME = 0x20 };
enum { TREE_CLONE = 1, FROM_EMPTY = 4, TO_EMPTY = 0x40 };

struct option {
    const char *key, *value;
};

static int new_mount(const char *type, const struct option *options, int attributes)
{
    int fs = CHECK(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC_));
    for (; options && options->key; options++)
        CHECK(syscall(SYS_fsconfig, fs, options->value ? FSCONFIG_STRING : FSCONFIG_FLAG, options->key, options->value, 0));
    CHECK(syscall(SYS_fsconfig, fs, FSCONFIG_CREATE, 0, 0, 0));
    int mount = CHECK(syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC_, attributes));
    close(fs);
    return mount;
}

static void mount_at(int root, const char *to, const char *type, const struct option *options, int attributes)
{
    int mount = new_mount(type, options, attributes);
    CHECK(syscall(SYS_move_mount, mount, "", root, to, FROM_EMPTY));
    close(mount);
}

static int clone_of(const char *path)
{
    return syscall(SYS_open_tree, AT_FDCWD, path, TREE_CLONE | O_CLOEXEC | AT_RECURSIVE);
}

static void mounts(int root)
{
    static const struct option dev[] = { { "mode", "755" }, { "size", "65536k" }, { 0 } };
    static const struct option pts[] = { { "newinstance", 0 }, { "ptmxmode", "0666" }, { "mode", "0620" }, { "gid", "5" }, { 0 } };
    static const struct option shm[] = { { "mode", "1777" }, { "size", "65536k" }, { 0 } };
    mount_at(root, "proc", "proc", 0, 0);
    mount_at(root, "dev", "tmpfs", dev, NOSUID | STRICTATIME);
    CHECK(mkdirat(root, "dev/pts", 0755));
    CHECK(mkdirat(root, "dev/shm", 0755));
    CHECK(mkdirat(root, "dev/mqueue", 0755));
    mount_at(root, "dev/pts", "devpts", pts, NOSUID | NOEXEC);
    mount_at(root, "dev/shm", "tmpfs", shm, NOSUID | NODEV | NOEXEC);
    mount_at(root, "dev/mqueue", "mqueue", 0, NOSUID | NODEV | NOEXEC);
    mount_at(root, "sys", "sysfs", 0, RDONLY | NOSUID | NODEV | NOEXEC);
    mount_at(root, "sys/fs/cgroup", "cgroup2", 0, RDONLY | NOSUID | NODEV | NOEXEC);
}

static void devices(int root)
{
    static const struct { const char *name; int major, minor; } nodes[] = {
        { "null", 1, 3 }, { "zero", 1, 5 }, { "full", 1, 7 }, { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
    };
    int dev = CHECK(openat(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC));
    mode_t mask = umask(0);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        CHECK(mknodat(dev, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)));
    umask(mask);
    CHECK(symlinkat("/proc/self/fd", dev, "fd"));
    CHECK(symlinkat("/proc/self/fd/0", dev, "stdin"));
    CHECK(symlinkat("/proc/self/fd/1", dev, "stdout"));
    CHECK(symlinkat("/proc/self/fd/2", dev, "stderr"));
    CHECK(symlinkat("pts/ptmx", dev, "ptmx"));
    close(dev);
}

static void hide(void)
{
    static const char *const readonly[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger" };
    static const char *const masked[] = { "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi" };
    struct { unsigned long long set, clear, propagation, fd; } attributes = { .set = RDONLY };
    for (size_t i = 0; i < sizeof readonly / sizeof *readonly; i++) {
        int tree = clone_of(readonly[i]);
        if (tree < 0)
            continue;
        CHECK(syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes));
        CHECK(syscall(SYS_move_mount, tree, "", AT_FDCWD, readonly[i], FROM_EMPTY));
        close(tree);
    }
    for (size_t i = 0; i < sizeof masked / sizeof *masked; i++) {
        struct stat what;
        int file = open(masked[i], O_PATH | O_CLOEXEC);
        if (file < 0)
            continue;
        CHECK(fstat(file, &what));
        int tree = CHECK(S_ISDIR(what.st_mode) ? new_mount("tmpfs", 0, RDONLY) : clone_of("/dev/null"));
        CHECK(syscall(SYS_move_mount, tree, "", file, "", FROM_EMPTY | TO_EMPTY));
        close(tree);
        close(file);
    }
}

/* Session, limit, capabilities (AUDIT_WRITE, KILL, NET_BIND_SERVICE), no_new_privs, and the program. */
static void process(void)
{
    static char *const argv[] = { "/bin/true", 0 };
    static char *const env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm", 0 };
    struct rlimit files = { 1024, 1024 };
    unsigned kept = 1u << 29 | 1u << 5 | 1u << 10;
    CHECK(setsid());
    CHECK(setrlimit(RLIMIT_NOFILE, &files));
    for (int cap = 0; cap < 64; cap++)
        if ((cap > 31 || !(kept >> cap & 1)) && prctl(PR_CAPBSET_DROP, cap) < 0)
            break;
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct sets[2] = { { .effective = kept, .permitted = kept } };
    CHECK(syscall(SYS_capset, &header, sets));
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(execve(argv[0], argv, env));
}

static void container(const char *rootfs)
{
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL));
    CHECK(mount(0, "/", 0, MS_SLAVE | MS_REC, 0));
    int root = CHECK(clone_of(rootfs));
    CHECK(syscall(SYS_move_mount, root, "", AT_FDCWD, rootfs, FROM_EMPTY));
    mounts(root);
    devices(root);
    CHECK(fchdir(root));
    CHECK(syscall(SYS_pivot_root, ".", "."));
    CHECK(umount2(".", MNT_DETACH));
    CHECK(chdir("/"));
    hide();
    CHECK(sethostname("floor", 5));
    int sock = CHECK(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    CHECK(ioctl(sock, SIOCSIFFLAGS, &request));
    close(sock);
    process();
}

/* The rules that every container has: any node may be made; null, zero, full, random, urandom, tty, console, ptmx and the
 * pseudo-terminals may be used. */
static void device_filter(int cgroup)
{
#define LOAD(reg, offset) { BPF_LDX | BPF_MEM | BPF_W, reg, 1, offset, 0 }
#define JUMP(op, reg, value, skip) { BPF_JMP | op | BPF_K, reg, 0, skip, value }
    struct bpf_insn program[] = {
        LOAD(2, 0),                                          /* access << 16 | type */
        LOAD(3, 4),                                          /* major */
        LOAD(4, 8),                                          /* minor */
        { BPF_ALU64 | BPF_MOV | BPF_X, 5, 2, 0, 0 },
        { BPF_ALU64 | BPF_RSH | BPF_K, 5, 0, 0, 16 },
        JUMP(BPF_JEQ, 5, BPF_DEVCG_ACC_MKNOD, 15),           /* mknod alone: allowed */
        { BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, 0xffff },
        JUMP(BPF_JNE, 2, BPF_DEVCG_DEV_CHAR, 11),
        JUMP(BPF_JEQ, 3, 136, 12),                           /* pseudo-terminals */
        JUMP(BPF_JEQ, 3, 5, 7),                              /* tty, console, ptmx */
        JUMP(BPF_JNE, 3, 1, 8),
        JUMP(BPF_JEQ, 4, 3, 9),
        JUMP(BPF_JEQ, 4, 5, 8),
        JUMP(BPF_JEQ, 4, 7, 7),
        JUMP(BPF_JEQ, 4, 8, 6),
        JUMP(BPF_JEQ, 4, 9, 5),
        JUMP(BPF_JA, 0, 0, 2),
        JUMP(BPF_JGT, 4, 2, 1),
        JUMP(BPF_JA, 0, 0, 2),
        { BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 },
        { BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
        { BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1 },
        { BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
    };
    union bpf_attr attr = { 0 };
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insn_cnt = sizeof program / sizeof *program;
    attr.insns = (unsigned long)program;
    attr.license = (unsigned long)"GPL";
    int loaded = CHECK(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr));
    memset(&attr, 0, sizeof attr);
    attr.target_fd = cgroup;
    attr.attach_bpf_fd = loaded;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI;
    CHECK(syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof attr));
    close(loaded);
}

/* Clones a child into the cgroup; gives its pidfd to the parent and -1 to the child. */
static int clone_into(int cgroup, unsigned long long namespaces)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = namespaces | CLONE_PIDFD | CLONE_INTO_CGROUP,
        .pidfd = (unsigned long)&pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = cgroup,
    };
    return CHECK(syscall(SYS_clone3, &args, sizeof args)) ? pidfd : -1;
}

static int status_of(int pidfd)
{
    siginfo_t info;
    CHECK(waitid(P_PIDFD, pidfd, &info, WEXITED));
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static const unsigned long long NAMESPACES =
    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

static int run(const char *rootfs, const char *path)
{
    CHECK(mkdir(path, 0755));
    int cgroup = CHECK(open(path, O_DIRECTORY | O_CLOEXEC));
    device_filter(cgroup);
    int child = clone_into(cgroup, NAMESPACES);
    if (child < 0)
        container(rootfs);
    int status = status_of(child);
    CHECK(rmdir(path));
    return status;
}

static int exec(const char *pid, const char *path)
{
    int cgroup = CHECK(open(path, O_DIRECTORY | O_CLOEXEC));
    int first = CHECK(syscall(SYS_pidfd_open, atoi(pid), 0));
    CHECK(setns(first, NAMESPACES));
    int child = clone_into(cgroup, 0);
    if (child < 0)
        process();
    return status_of(child);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "run"))
        return run(argv[2], argv[3]);
    if (argc == 4 && !strcmp(argv[1], "exec"))
        return exec(argv[2], argv[3]);
    dprintf(2, "usage: floor run ROOTFS CGROUP | floor exec PID CGROUP\n");
    return 2;
}
