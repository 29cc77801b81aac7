/** Finds which process has accepted a connection, from Linux's /proc. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The states of a connection that may carry bytes, as /proc/net/tcp writes them: established, and ended by the client. */
const OPEN = ['01', '08']

interface Connection {
  readonly inode: string
  /** The port of the client. */
  readonly from: number
}

/** The ports of clients whose connections to `port` this process has accepted. */
export function acceptedBy(pid: number, port: number): Set<number> {
  const inodes = new Set(socketsOf(pid))
  const mine = connectionsTo(port, readFileSync('/proc/net/tcp', 'latin1')).filter(({ inode }) => inodes.has(inode))
  return new Set(mine.map(({ from }) => from))
}

/** Connections to a port on loopback, from the lines of /proc/net/tcp; one that is not yet accepted has inode 0. */
export function connectionsTo(port: number, lines: string): Connection[] {
  return lines.split('\n').flatMap((line) => {
    const [, local = '', remote = '', state = '', , , , , , inode = ''] = line.trim().split(/\s+/)
    return portOf(local) === port && OPEN.includes(state) ? [{ inode, from: portOf(remote) }] : []
  })
}

/** Addresses are written as `0100007F:1F90`. */
function portOf(address: string): number {
  return Number.parseInt(address.slice(address.indexOf(':') + 1), 16)
}

function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${fd}`))?.[1] ?? []
    } catch {
      // It was closed meanwhile.
      return []
    }
  })
}
