/** Reads Linux's table of TCP connections, which shows the state of a connection without reading from it. */
import { createReadStream } from 'node:fs'
import { isIPv6, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { ipBytes } from './ip-bytes.ts'

/** As in `include/net/tcp_states.h`; a connection that was reset is not in the table. */
export const tcpStates = { established: 1, closeWait: 8 } as const

export type TcpTable = ReadonlyMap<string, number>

/** The table is read in pieces of this many bytes, so that a long one does not block the event loop. */
const PIECE_BYTES = 64 * 1024

/** `  0: 0100007F:1F90 0100007F:C350 01 …`: number, local end, remote end, state. */
const LINE = /^\s*\d+: ([\dA-F]+:[\dA-F]{4}) ([\dA-F]+:[\dA-F]{4}) ([\dA-F]{2}) /

/** States by the keys of `tcpKey`; undefined where the system has no such table. */
export async function readTcpTable(family: 4 | 6): Promise<TcpTable | undefined> {
  const table = new Map<string, number>()
  try {
    let rest = ''
    const stream = createReadStream(family === 6 ? '/proc/self/net/tcp6' : '/proc/self/net/tcp', {
      encoding: 'latin1',
      highWaterMark: PIECE_BYTES,
    })
    for await (const piece of stream) {
      const lines = `${rest}${String(piece)}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const [, local, remote, state = ''] = LINE.exec(line) ?? []
        if (local !== undefined) table.set(`${local} ${remote}`, Number.parseInt(state, 16))
      }
    }
    return table
  } catch {
    return undefined
  }
}

/** The family and key under which a socket is in the table; undefined when the socket no longer has addresses. */
export function tcpKey(socket: Socket): { family: 4 | 6; key: string } | undefined {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  if (localAddress === undefined || remoteAddress === undefined) return undefined
  const [local, remote] = [endOf(localAddress, localPort), endOf(remoteAddress, remotePort)]
  if (local === undefined || remote === undefined) return undefined
  return { family: isIPv6(remoteAddress) ? 6 : 4, key: `${local} ${remote}` }
}

/** One end of a connection as the table writes it: every four bytes of the address are a number in host byte order. */
function endOf(address: string, port = 0): string | undefined {
  const bytes = ipBytes(address)
  if (!bytes) return undefined
  if (endianness() === 'LE') bytes.swap32()
  return `${bytes.toString('hex')}:${port.toString(16).padStart(4, '0')}`.toUpperCase()
}
