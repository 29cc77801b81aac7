/** A slow disk: a library that wraps a process's own calls, and waits in them while a file exists. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Owner } from './upstream.ts'

export interface SlowDisk {
  /** For the environment of the process that is to have a slow disk. */
  readonly env: Readonly<Record<string, string>>
  /** Makes the disk slow from now on. */
  slow(): void
  quick(): void
}

/** How long each call waits while the disk is slow, in milliseconds: as on a busy disk. */
export const SYNC_MS = 100
export const WRITE_MS = 2

// Only calls that databases use: logs and sockets are written with others.
const source = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_ms(int ms) {
  const char *sign = getenv("SLOW_DISK_SIGN");
  if (sign && access(sign, F_OK) == 0) usleep(ms * 1000);
}
int fsync(int fd) {
  wait_ms(${SYNC_MS});
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int fdatasync(int fd) {
  wait_ms(${SYNC_MS});
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  wait_ms(${WRITE_MS});
  return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  wait_ms(${WRITE_MS});
  return ((ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, count, at);
}
`

/** Returns the reason when this machine has no compiler for it. */
export function slowDisk(owner: Owner): SlowDisk | string {
  const folder = mkdtempSync(join(tmpdir(), 'slow-disk-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const [code, library, sign] = ['slow.c', 'slow.so', 'sign'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(code, source)
  const made = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, code, '-ldl'], { encoding: 'utf8' })
  if (made.status !== 0) return `a slow disk takes a C compiler: ${made.stderr?.trim() || made.error?.message || ''}`
  return {
    env: { LD_PRELOAD: library, SLOW_DISK_SIGN: sign },
    slow: () => writeFileSync(sign, ''),
    quick: () => rmSync(sign, { force: true }),
  }
}
