/** Runs a program as in a closed container: all is read-only but one folder, and its user has no capability. */
import { spawnSync } from 'node:child_process'

export interface Confinement {
  /** The folder that can be written, and where the program starts. */
  readonly folder: string
  readonly uid: number
  readonly gid: number
}

/** In a mount namespace of its own, so that nobody else's system becomes read-only. */
const SCRIPT = `
  folder=$1; uid=$2; gid=$3; shift 3
  mount --bind "$folder" "$folder"
  mount -o remount,bind,ro /
  cd "$folder"
  exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"`

/** The program and the arguments that run `command` so. */
export function confined({ folder, uid, gid }: Confinement, command: readonly string[]): [string, string[]] {
  const script = ['sh', '-ec', SCRIPT, 'sh', folder, String(uid), String(gid)]
  return ['unshare', ['--mount', '--propagation=private', ...script, ...command]]
}

/** Whether this machine and this user can do that, with Node and with the file `reads`. */
export function canConfine(to: Confinement, reads: string): boolean {
  const code = `process.exitCode = require('node:fs').readFileSync(${JSON.stringify(reads)}).length > 0 ? 0 : 1`
  const [program, args] = confined(to, [process.execPath, '--eval', code])
  return spawnSync(program, args).status === 0
}
