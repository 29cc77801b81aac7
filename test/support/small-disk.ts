/** A disk of a few megabytes that a test can fill. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Owner } from './upstream.ts'

export interface SmallDisk {
  readonly path: string
  /** Uses up all space. */
  fill(): void
  /** Frees the space that `fill` used. */
  free(): void
}

/** Mounts a file system in memory until its owner ends; returns the reason when that is not possible. */
export function smallDisk(owner: Owner, megabytes: number): SmallDisk | string {
  const path = mkdtempSync(join(tmpdir(), 'postern-disk-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], { encoding: 'utf8' })
  if (mounted.status !== 0) {
    rmdirSync(path)
    return `a small disk cannot be mounted, which takes root: ${mounted.stderr?.trim() ?? 'there is no mount'}`
  }
  owner.after(() => {
    // Lazily, since a process that is about to end may still hold a file open.
    spawnSync('umount', ['--lazy', path])
    rmdirSync(path)
  })
  const filler = join(path, 'filler')
  return {
    path,
    fill() {
      for (const bytes of [64 * 1024, 4096]) {
        try {
          for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' })
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
      }
    },
    free: () => rmSync(filler, { force: true }),
  }
}
