/** A DNS server for tests: answers only for the TXT and CNAME records that a test sets. */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'

export interface TestResolver {
  /** `127.0.0.1:<port>`. */
  readonly address: string
  /** Records by name. */
  readonly txt: Map<string, readonly string[]>
  readonly cname: Map<string, string>
  /** Names that were looked up, in order. */
  readonly asked: string[]
  mood: 'answers' | 'fails'
  stop(): void
}

const TXT = 16
const CNAME = 5
const NOERROR = 0
const SERVFAIL = 2
const NXDOMAIN = 3

export async function startTestResolver(): Promise<TestResolver> {
  const socket = createSocket('udp4')
  const resolver = {
    address: '',
    txt: new Map<string, readonly string[]>(),
    cname: new Map<string, string>(),
    asked: [] as string[],
    mood: 'answers' as TestResolver['mood'],
    stop: () => void socket.close(),
  }
  socket.on('message', (query: Buffer, { port, address }: RemoteInfo) => {
    const { name, type, end } = questionOf(query)
    resolver.asked.push(name)
    const data =
      type === TXT
        ? (resolver.txt.get(name) ?? []).map((text) => Buffer.from([text.length, ...Buffer.from(text)]))
        : type === CNAME && resolver.cname.has(name)
          ? [wireName(resolver.cname.get(name) ?? '')]
          : []
    const isKnown = resolver.txt.has(name) || resolver.cname.has(name)
    const code = resolver.mood === 'fails' ? SERVFAIL : isKnown ? NOERROR : NXDOMAIN
    const answers = code === NOERROR ? data.map((each) => recordOf(type, each)) : []
    const head = Buffer.alloc(12)
    query.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8180 | code, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(answers.length, 6)
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  resolver.address = `127.0.0.1:${socket.address().port}`
  return resolver
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** A record of the name in the question, which is at offset 12. */
function recordOf(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(1, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

function wireName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  return Buffer.concat([...labels, Buffer.alloc(1)])
}
