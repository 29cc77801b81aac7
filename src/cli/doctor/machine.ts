/** The checks of `postern doctor` for the machine: disk space, the limit of open files, and the clock. */
import { readFile, statfs } from 'node:fs/promises'
import { errorCode } from '../../lib/error-code.ts'
import { requestOf } from '../api/request.ts'
import { type Finding, toDo, unknown, well } from './finding.ts'

/** The least free space for a database that is written to, in bytes. */
const LEAST_ROOM_BYTES = 512 * 1024 * 1024

/** The least limit of open files: each visitor takes two descriptors, each agent one. */
const LEAST_FILES = 8192

/** Certificates and logins tolerate a smaller error of the clock, in milliseconds. */
const MAX_SKEW_MS = 30_000

/** How long the other server may take to respond, in milliseconds. */
const TIME_MS = 5000

const MIB = 1024 * 1024

export async function checkDisk(folder: string): Promise<Finding> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return diskFinding(folder, { free: bavail * bsize, size: blocks * bsize })
  } catch (error) {
    return unknown(
      'disk',
      `${folder} cannot be checked: ${textOf(error)}`,
      "give the server's data folder with --data-dir",
    )
  }
}

export function diskFinding(folder: string, { free, size }: { readonly free: number; readonly size: number }): Finding {
  const about = `${Math.floor(free / MIB)} MiB of ${Math.floor(size / MIB)} MiB are free for ${folder}`
  return free < LEAST_ROOM_BYTES
    ? toDo('disk', about, 'free some space, or move the data folder to a larger disk')
    : well('disk', about)
}

/** Checks the limit of this shell, which a server started from it has too; a service manager may set another. */
export async function checkFiles(read = () => readFile('/proc/self/limits', 'utf8')): Promise<Finding> {
  const limits = await read().catch(() => '')
  const [, soft = '', hard = ''] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits) ?? []
  if (hard === '') return unknown('open files', 'this system does not report its limits')
  // Node raises its own limit to the hard one when it starts.
  const about = `${hard} files may be open at once (${soft} before Node raises it)`
  if (hard === 'unlimited' || Number(hard) >= LEAST_FILES) return well('open files', about)
  return toDo('open files', about, 'raise it: LimitNOFILE=65536 in the service, or `ulimit -Hn 65536`')
}

/** Compares the clock with that of the certificate authority, whose clock our requests must match. */
export async function checkClock(directory: string, caPem: string | undefined, now = Date.now): Promise<Finding> {
  if (directory === '') return unknown('clock', 'there is no --acme-directory to compare the clock with')
  try {
    const asked = now()
    const { date } = await requestOf(directory, { method: 'GET', headers: {}, ca: caPem, withinMs: TIME_MS })
    return clockFinding(new URL(directory).host, Date.parse(date ?? ''), (asked + now()) / 2)
  } catch (error) {
    return toDo(
      'clock',
      `${directory} cannot be reached: ${textOf(error)}`,
      'allow the server to connect to its certificate authority',
    )
  }
}

export function clockFinding(host: string, theirs: number, ours: number): Finding {
  if (Number.isNaN(theirs)) return unknown('clock', `${host} did not report its time`)
  const seconds = Math.round((ours - theirs) / 1000)
  const about = `${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} the clock of ${host}`
  return Math.abs(ours - theirs) > MAX_SKEW_MS
    ? toDo('clock', about, 'set it, for example with `timedatectl set-ntp true`')
    : well('clock', about)
}

function textOf(error: unknown): string {
  return errorCode(error) ?? (error instanceof Error ? error.message : String(error))
}
