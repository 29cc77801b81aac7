/** A small name server for tests: one zone, TXT records that signed updates change, and any faults a test wants. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import {
  type DnsRecord,
  dnsClass,
  dnsName,
  dnsOpcode,
  dnsType,
  type ReadDnsMessage,
  readDnsMessage,
  readTxt,
  uint16s,
  writeDnsMessage,
} from '../../src/lib/dns/dns-message.ts'
import { signDnsMessage, type TsigKey, tsigFault } from '../../src/lib/dns/tsig.ts'

export interface DnsMood {
  /** Marks answers over UDP as truncated. */
  isTruncating: boolean
  isSilentOverUdp: boolean
  /** Answers updates with this code. */
  rcode: number
  /** Changes an answer before it is sent, to lie; undefined sends nothing. */
  twist: (answer: Buffer) => Buffer | undefined
  /** Signs answers with this key. */
  answersWith: TsigKey | undefined
  nameServers: readonly string[]
}

export interface TestDnsServer {
  readonly host: string
  readonly port: number
  readonly mood: DnsMood
  /** The values of TXT records, by name. */
  readonly txt: Map<string, string[]>
  /** The queries, with their protocol, in order. */
  readonly asked: string[]
  stop(): Promise<void>
}

const NO_SUCH_NAME = 3
const REFUSED = 5
const NOT_AUTH = 9
const NOT_ZONE = 10

export async function startDnsServer({ zone, key }: { zone: string; key: TsigKey }): Promise<TestDnsServer> {
  const mood: DnsMood = {
    ...{ isTruncating: false, isSilentOverUdp: false, rcode: 0, twist: (answer: Buffer) => answer },
    ...{ answersWith: key, nameServers: [] },
  }
  const txt = new Map<string, string[]>()
  const asked: string[] = []
  const sockets = new Set<Socket>()

  const records = (name: string, type: number): DnsRecord[] => {
    const record = { name, type, class: dnsClass.in, ttl: 60 }
    if (type === dnsType.txt) {
      return (txt.get(name) ?? []).map((text) => ({
        ...record,
        data: Buffer.concat([Buffer.of(text.length), Buffer.from(text)]),
      }))
    }
    if (type === dnsType.ns && name === zone)
      return mood.nameServers.map((each) => ({ ...record, data: dnsName(each) }))
    return type === dnsType.soa && name === zone ? [soa()] : []
  }
  const soa = (): DnsRecord => ({
    ...{ name: zone, type: dnsType.soa, class: dnsClass.in, ttl: 60 },
    data: Buffer.concat([dnsName('ns.test'), dnsName('ops.test'), Buffer.alloc(20)]),
  })

  function change({ questions, authorities }: ReadDnsMessage): number {
    if (mood.rcode !== 0) return mood.rcode
    if (questions[0]?.name !== zone) return NOT_AUTH
    for (const { name, class: of, data } of authorities) {
      if (name !== zone && !name.endsWith(`.${zone}`)) return NOT_ZONE
      const others = (txt.get(name) ?? []).filter((each) => each !== readTxt(data))
      txt.set(name, of === dnsClass.none ? others : [...others, readTxt(data)])
    }
    return 0
  }

  function answerTo(bytes: Buffer, over: 'udp' | 'tcp'): Buffer | undefined {
    const message = readDnsMessage(bytes)
    const { id, opcode, questions } = message
    const { name, type } = questions[0] ?? { name: '', type: 0 }
    asked.push(`${over} ${opcode === dnsOpcode.update ? 'update' : 'look'} ${name}`)
    if (over === 'udp' && mood.isSilentOverUdp) return undefined
    const isTruncated = over === 'udp' && mood.isTruncating
    const isSigned = message.additionals.at(-1)?.type === dnsType.tsig
    const fault = isSigned ? tsigFault(bytes, message, { key, now: Date.now() }) : 'not signed'
    const isUpdate = opcode === dnsOpcode.update
    if ((isUpdate || isSigned) && fault !== undefined) {
      return writeDnsMessage({ id, opcode, questions, isAnswer: true, rcode: NOT_AUTH })
    }
    const reply = { id, opcode, questions, isAnswer: true, isTruncated }
    const isOurs = name === zone || name.endsWith(`.${zone}`)
    const found = isUpdate || !isOurs ? [] : records(name, type)
    const rcode = isUpdate ? change(message) : !isOurs ? REFUSED : found.length > 0 || name === zone ? 0 : NO_SUCH_NAME
    const authorities = isOurs && !isUpdate && found.length === 0 ? [soa()] : []
    const answer = writeDnsMessage({ ...reply, rcode, ...(!isTruncated && { answers: found, authorities }) })
    if (!isSigned || !mood.answersWith) return mood.twist(answer)
    const requestMac = macIn(message)
    return mood.twist(signDnsMessage(answer, mood.answersWith, Date.now(), requestMac).bytes)
  }

  const udp = createSocket('udp4')
  const tcp = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let got = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk])
      if (got.length < 2 || got.length < 2 + got.readUInt16BE(0)) return
      const answer = answerTo(got.subarray(2, 2 + got.readUInt16BE(0)), 'tcp')
      if (answer) socket.end(Buffer.concat([uint16s(answer.length), answer]))
      else socket.end()
    })
  })
  // The same port for both: one that the system gives for TCP is nearly always free for UDP too.
  for (;;) {
    tcp.listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    const { port } = tcp.address() as AddressInfo
    const bound = await new Promise<boolean>((resolve) => {
      udp.once('error', () => resolve(false))
      udp.bind(port, '127.0.0.1', () => resolve(true))
    })
    if (bound) break
    await new Promise((resolve) => tcp.close(resolve))
  }
  udp.on('message', (bytes, { port, address }) => {
    const answer = answerTo(bytes, 'udp')
    if (answer) udp.send(answer, port, address)
  })
  return {
    host: '127.0.0.1',
    port: udp.address().port,
    mood,
    txt,
    asked,
    async stop() {
      udp.close()
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => tcp.close(resolve))
    },
  }
}

/** RFC 8945 §4.2: after the algorithm, the time and the fudge. */
function macIn({ additionals }: ReadDnsMessage): Buffer {
  const data = additionals.at(-1)?.data ?? Buffer.alloc(0)
  const at = data.indexOf(0) + 1 + 6 + 2
  return data.subarray(at + 2, at + 2 + data.readUInt16BE(at))
}
