/** Runs a program as in a locked-down container: all but one folder is read-only, and its user has no capability. */
import { spawnSync } from 'node:child_process'

export interface Confinement {
  /** The writable folder, where the program starts. */
  readonly folder: string
  readonly uid: number
  readonly gid: number
}

/** Uses its own mount namespace, so that the rest of the system does not become read-only. */
const SCRIPT = `
  folder=$1; uid=$2; gid=$3; shift 3
  mount --bind "$folder" "$folder"
  mount -o remount,bind,ro /
  cd "$folder"
  exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"`

/** The program and arguments that run `command` confined. */
export function confined({ folder, uid, gid }: Confinement, command: readonly string[]): [string, string[]] {
  const script = ['sh', '-ec', SCRIPT, 'sh', folder, String(uid), String(gid)]
  return ['unshare', ['--mount', '--propagation=private', ...script, ...command]]
}

/** Whether this machine and this user can confine Node, which must be able to read the file `reads`. */
export function canConfine(to: Confinement, reads: string): boolean {
  const code = `process.exitCode = require('node:fs').readFileSync(${JSON.stringify(reads)}).length > 0 ? 0 : 1`
  const [program, args] = confined(to, [process.execPath, '--eval', code])
  return spawnSync(program, args).status === 0
}
