/* emit FILE STAMP [BYTES_PER_SECOND]: write FILE to standard output in pieces of 4 KB, as fast as it goes or paced,
 * and write the seconds that took into STAMP. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    double rate = argc > 3 ? atof(argv[3]) : 0;
    int file = open(argv[1], O_RDONLY);
    struct stat found;
    if (file < 0 || fstat(file, &found)) return 1;
    char *data = mmap(NULL, found.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (data == MAP_FAILED) return 1;
    double began = now();
    off_t at = 0;
    while (at < found.st_size) {
        size_t piece = found.st_size - at < 4096 ? (size_t)(found.st_size - at) : 4096;
        if (rate > 0) {
            double ahead = began + at / rate - now();
            if (ahead > 0.0005) usleep((useconds_t)(ahead * 1e6));
        }
        ssize_t written = write(STDOUT_FILENO, data + at, piece);
        if (written < 0) return 1;
        at += written;
    }
    double took = now() - began;
    FILE *stamp = fopen(argv[2], "w");
    if (!stamp) return 1;
    fprintf(stamp, "%.6f\n", took);
    return fclose(stamp) ? 1 : 0;
}
