/** The system's own table of TCP connections, as Linux shows it: what has become of one that nobody reads. */
import { createReadStream } from 'node:fs'
import { isIPv6, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { ipBytes } from './ip-bytes.ts'

/** As `include/net/tcp_states.h` numbers them; of a connection that was reset there is no line. */
export const tcpStates = { established: 1, closeWait: 8 } as const

export type TcpTable = ReadonlyMap<string, number>

/** Read piece by piece, in bytes, so that a long table does not hold up the event loop. */
const PIECE_BYTES = 64 * 1024

/** `  0: 0100007F:1F90 0100007F:C350 01 …`: number, our end, the other end, state. */
const LINE = /^\s*\d+: ([\dA-F]+:[\dA-F]{4}) ([\dA-F]+:[\dA-F]{4}) ([\dA-F]{2}) /

/** State by connection, see `tcpKey`; undefined where the system has no such table. */
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

/** Under which key of the table of which family a connected socket stands; undefined when it has no addresses any more. */
export function tcpKey(socket: Socket): { family: 4 | 6; key: string } | undefined {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  if (localAddress === undefined || remoteAddress === undefined) return undefined
  const [local, remote] = [endOf(localAddress, localPort), endOf(remoteAddress, remotePort)]
  if (local === undefined || remote === undefined) return undefined
  return { family: isIPv6(remoteAddress) ? 6 : 4, key: `${local} ${remote}` }
}

/** Each four bytes of the address are written as a number of this machine. */
function endOf(address: string, port = 0): string | undefined {
  const bytes = ipBytes(address)
  if (!bytes) return undefined
  if (endianness() === 'LE') bytes.swap32()
  return `${bytes.toString('hex')}:${port.toString(16).padStart(4, '0')}`.toUpperCase()
}
