/** Sends a message to one DNS server and gets its answer: over UDP, and over TCP when UDP fails. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, isIPv6 } from 'node:net'
import { uint16s } from './dns-message.ts'

export interface DnsServerAddress {
  readonly host: string
  readonly port: number
}

export interface DnsExchangeLimits {
  /** How long to wait for an answer over UDP, one number for each try, in milliseconds. */
  readonly udpMs: readonly number[]
  readonly tcpMs: number
}

const dnsExchangeLimits: DnsExchangeLimits = { udpMs: [1500, 3000, 5000], tcpMs: 10_000 }

/** RFC 1035 §4.2.1: the longest message over UDP; longer ones go over TCP. */
const MAX_UDP_BYTES = 512

const IS_TRUNCATED = 0x02

/**
 * The answer with the number of the message; others are ignored. Rejects when none comes. The caller must check its
 * content.
 */
export async function exchangeDns(
  server: DnsServerAddress,
  message: Buffer,
  { udpMs, tcpMs }: DnsExchangeLimits = dnsExchangeLimits,
): Promise<Buffer> {
  if (message.length <= MAX_UDP_BYTES) {
    for (const ms of udpMs) {
      const answer = await overUdp(server, message, ms)
      if (!answer) continue
      if (((answer[2] ?? 0) & IS_TRUNCATED) === 0) return answer
      break
    }
  }
  return overTcp(server, message, tcpMs)
}

/** Undefined when no answer came: a datagram may be lost, and a server may have no UDP. */
async function overUdp({ host, port }: DnsServerAddress, message: Buffer, ms: number): Promise<Buffer | undefined> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  // An error may also come while nothing waits for it.
  socket.on('error', () => {})
  const giveUp = AbortSignal.timeout(ms)
  try {
    // Connected, so that only this server can answer.
    socket.connect(port, host)
    await once(socket, 'connect', { signal: giveUp })
    socket.send(message)
    for (;;) {
      const [answer] = (await once(socket, 'message', { signal: giveUp })) as [Buffer]
      if (isAnswerTo(message, answer)) return answer
    }
  } catch {
    // TCP is tried next, and reports why it fails.
    return undefined
  } finally {
    socket.close()
  }
}

/** RFC 1035 §4.2.2: each message is preceded by its length. */
async function overTcp({ host, port }: DnsServerAddress, message: Buffer, ms: number): Promise<Buffer> {
  const socket = connect({ host, port })
  const late = setTimeout(() => socket.destroy(new Error(`no answer within ${ms / 1000} seconds`)), ms)
  try {
    socket.write(Buffer.concat([uint16s(message.length), message]))
    let got = Buffer.alloc(0)
    for await (const chunk of socket) {
      got = Buffer.concat([got, chunk as Buffer])
      while (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) {
        const answer = got.subarray(2, 2 + got.readUInt16BE(0))
        if (isAnswerTo(message, answer)) return answer
        got = got.subarray(2 + answer.length)
      }
    }
    throw new Error('the connection ended before an answer came')
  } finally {
    clearTimeout(late)
    socket.destroy()
  }
}

const IS_ANSWER = 0x80

/** The same number, and marked as an answer. */
function isAnswerTo(message: Buffer, answer: Buffer): boolean {
  return answer.length >= 12 && answer.readUInt16BE(0) === message.readUInt16BE(0) && ((answer[2] ?? 0) & IS_ANSWER) > 0
}
