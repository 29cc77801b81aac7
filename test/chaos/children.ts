/** The processes of a server, as Linux reports them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface Children {
  readonly control: number
  /** In no particular order. */
  readonly workers: readonly number[]
}

const MIB_PER_KIB = 1 / 1024

/** The children of a supervisor; undefined while there are too few or too many. */
export function childrenOf(supervisor: number, workerCount: number): Children | undefined {
  const pids = childPids(supervisor)
  const [control, ...others] = controlsOf(supervisor)
  const workers = pids.filter((pid) => runs(pid, 'run-worker'))
  const isWhole = control !== undefined && others.length === 0 && workers.length === workerCount
  return isWhole && pids.length === workerCount + 1 ? { control, workers } : undefined
}

/** The control processes of a supervisor: two during an upgrade. */
export function controlsOf(supervisor: number): number[] {
  return childPids(supervisor).filter((pid) => runs(pid, 'run-control'))
}

function runs(pid: number, command: string): boolean {
  return read(`/proc/${pid}/cmdline`).split('\0').includes(command)
}

/** All child pids, including zombies. */
export function childPids(supervisor: number): number[] {
  return list(`/proc/${supervisor}/task`).flatMap((task) =>
    read(`/proc/${supervisor}/task/${task}/children`).split(' ').filter(Boolean).map(Number),
  )
}

export function descriptorsOf(pid: number): number {
  return list(`/proc/${pid}/fd`).length
}

/** The resident memory of a process, shared pages included, in MiB. */
export function residentMib(pid: number): number {
  return Number(/^VmRSS:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) * MIB_PER_KIB
}

export interface TcpConnection {
  readonly nearPort: number
  readonly farPort: number
}

/** The open IPv4 connections of a process. */
export function connectionsOf(pid: number): TcpConnection[] {
  const inodes = new Set(
    list(`/proc/${pid}/fd`).flatMap((fd) => /^socket:\[(\d+)\]$/.exec(link(`/proc/${pid}/fd/${fd}`))?.[1] ?? []),
  )
  // proc_net_tcp: the second and third fields are `address:port` of both ends in hexadecimal; the tenth is the inode.
  const rows = read('/proc/net/tcp').split('\n').slice(1)
  return rows.flatMap((row) => {
    const [, near = '', far = '', , , , , , , inode = ''] = row.trim().split(/\s+/)
    const portOf = (address: string) => Number.parseInt(address.split(':')[1] ?? '0', 16)
    const farPort = portOf(far)
    // A listening socket has no remote end.
    return inodes.has(inode) && farPort !== 0 ? [{ nearPort: portOf(near), farPort }] : []
  })
}

/** Reads a file; empty when the process is gone. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
