/* Runs a command and writes what it took to a file.
 *
 *   measure FILE COMMAND ARG…   writes "STATUS WALL_NS CPU_US PEAK_KB\n"
 *
 * Wall time is from before the vfork to after the wait. CPU is user and system time of the command and of all its descendants that
 * were waited for; the peak is the resident set of the largest of these processes. A program of its own because it is small: until
 * it executes, a child has the resident set of its parent, and the kernel counts that as its peak.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec begin, end;
    struct rusage used;
    int status;
    if (argc < 3)
        return 2;
    int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child = vfork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long wall = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
    long long cpu = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    dprintf(out, "%d %lld %lld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), wall, cpu,
            used.ru_maxrss);
    return 0;
}
