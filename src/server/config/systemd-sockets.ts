/** Sockets that a service manager opened for us and keeps open while we restart: `LISTEN_FDS` of systemd. */
import { nearest } from '../../lib/text/nearest.ts'
import { SettingsError } from './settings-error.ts'

/** The settings of listeners without their `-listen`, and `tcp` for the port of a TCP edge or endpoint. */
export const listenerNames = ['api', 'metrics', 'agent', 'ssh', 'https', 'http', 'cluster'] as const
export type ListenerName = (typeof listenerNames)[number]

export interface HandedSocket {
  readonly name: ListenerName | 'tcp'
  readonly fd: number
}

interface Handed {
  readonly sockets: readonly HandedSocket[]
  /** The process that they are for, if it is not this one. */
  readonly otherPid: number | undefined
}

/**
 * See sd_listen_fds(3): the sockets begin at descriptor 3, and the variables are only for the process that `LISTEN_PID`
 * names.
 */
const FIRST_FD = 3
const variables = ['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES'] as const

/**
 * Removes the variables from `env`, so that no child process takes them for its own. Throws `SettingsError` when the
 * sockets are for us and are not described properly.
 */
export function takeHanded(env: Record<string, string | undefined>, isOurs: (pid: number) => boolean): Handed {
  const [count, pid, names = ''] = variables.map((variable) => {
    const text = env[variable]
    delete env[variable]
    return text
  })
  if (!count || !pid) return { sockets: [], otherPid: undefined }
  if (!isOurs(Number(pid))) return { sockets: [], otherPid: Number(pid) }
  if (!/^\d{1,5}$/.test(count)) throw new SettingsError(['`LISTEN_FDS` must be a number of sockets'])
  return { sockets: Number(count) === 0 ? [] : withNames(names.split(':'), Number(count)), otherPid: undefined }
}

function withNames(names: readonly string[], count: number): readonly HandedSocket[] {
  if (names.length !== count) {
    throw new SettingsError([`\`LISTEN_FDNAMES\` must name each of the ${count} sockets of \`LISTEN_FDS\`; ${naming}`])
  }
  const problems: string[] = []
  const sockets: HandedSocket[] = []
  for (const [index, text] of names.entries()) {
    const name = known.find((each) => each === text)
    const fd = FIRST_FD + index
    if (name === undefined) problems.push(unknown(text, fd))
    else if (name !== 'tcp' && sockets.some((each) => each.name === name)) problems.push(twice(name))
    else sockets.push({ name, fd })
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return sockets
}

const known = [...listenerNames, 'tcp'] as const
const naming = `set \`FileDescriptorName=\` of each socket unit to one of ${known.join(', ')}`

function unknown(name: string, fd: number): string {
  const meant = nearest(name, known)
  return `the socket \`${name}\` (descriptor ${fd}) has no listener of that name; ${meant ? `did you mean \`${meant}\`?` : naming}`
}

function twice(name: string): string {
  return `two sockets are named \`${name}\`, but a listener has only one; an address such as \`[::]:443\` accepts IPv4 too`
}
