/**
 * Sends hostile PROXY headers to the listeners of visitors and agents, from a trusted hop and from a stranger. Each
 * connection must end in time, and be served exactly when a strict reader finds a header, as the visitor that the
 * reader finds, with every byte behind the header and no others.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { clientHello } from '../e2e/edges/client-hello.ts'
import { listener } from '../e2e/edges/upstreams.ts'
import { readToEnd } from '../e2e/edges/visitor.ts'
import { World } from '../e2e/edges/world.ts'
import { until } from '../support/until.ts'
import { headerShape, readStrictly } from './proxy-header-shapes.ts'
import { Dice } from './smuggling-shapes.ts'

const HOP = '127.0.0.2'
const STRANGER = '127.0.0.3'

/** How many cases run at once. */
const AT_ONCE = 32

/** How long one connection may take, in milliseconds: more than any timeout on the way, on a busy machine. */
const LIMIT_MS = 30_000

/** How long the server waits for a header, and for a hello, in milliseconds; a stalled machine may miss the limit. */
const SERVER_WAITS_MS = 3000

/** How often a case is sent when the server may have stopped waiting for it. */
const TRIES = 5

export interface ProxyTally {
  sent: number
  served: number
  refused: number
}

interface Case {
  readonly edgeEntry: 'tcp' | 'https' | 'agents'
  readonly isHop: boolean
  readonly bytes: Buffer
  /** Where it is cut into pieces. */
  readonly cuts: readonly number[]
}

export class ProxyHeaders {
  readonly tally: ProxyTally = { sent: 0, served: 0, refused: 0 }
  readonly #world: World
  readonly #ports: Readonly<Record<Case['edgeEntry'], number>>
  readonly #hello: Buffer
  /** Addresses that hops named, and that strangers named; a mutated header may be in both. */
  readonly #named = new Set<string>()
  readonly #madeUp = new Set<string>()
  #id = 0

  private constructor(world: World, ports: Readonly<Record<Case['edgeEntry'], number>>, hello: Buffer) {
    this.#world = world
    this.#ports = ports
    this.#hello = hello
  }

  static async start(): Promise<ProxyHeaders> {
    const flags = { 'trusted-proxies': `${HOP}/32`, 'log-level': 'debug' }
    const world = await World.start({ flags })
    const echo = await listener(world, (socket) => socket.pipe(socket))
    const tcp = await world.tcpEdge({ backend: await world.toAddress(echo) })
    const { name } = await world.httpsEdge({})
    const hello = await clientHello((port) => connectTls({ port, host: '127.0.0.1', servername: name }))
    const agents = Number(world.platform.agents.split(':').at(-1))
    return new ProxyHeaders(world, { tcp: tcp.port, https: world.platform.httpsPort, agents }, hello)
  }

  async stop(): Promise<void> {
    await until('no connection is left', async () => {
      const text = await (await fetch(this.#world.platform.metricsUrl)).text()
      const open = [...text.matchAll(/^postern_connections_open\{door="(?:visitors|agents)"\} (\d+)$/gm)]
      return open.length === 2 && open.every(([, count]) => count === '0')
    })
    await this.#world.stop()
    const { log } = this.#world.platform
    assert.deepEqual(
      log.filter((line) => /"level":"(error|fatal)"/.test(line)),
      [],
    )
    const text = log.join('')
    const shown = new Set([...text.matchAll(/"(?:ip|peer)":"([^"]*)"/g)].map(([, ip]) => ip))
    for (const ip of this.#madeUp) {
      assert.ok(this.#named.has(ip) || !shown.has(ip), `a stranger was taken for ${ip}`)
    }
  }

  /** Sends cases until `isOver`; a case that ends wrongly fails with all that is needed to repeat it. */
  async run(seed: number, isOver: (sent: number) => boolean): Promise<void> {
    const dice = new Dice(seed)
    const lane = async (): Promise<void> => {
      while (!isOver(this.tally.sent)) {
        const one = this.#next(dice)
        this.tally.sent++
        await this.#check(one)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  }

  #next(dice: Dice): Case {
    const edgeEntry = dice.pick(['tcp', 'tcp', 'https', 'agents'] as const)
    const header = headerShape(dice, ++this.#id)
    const payload = dice.chance(15)
      ? Buffer.alloc(0)
      : edgeEntry === 'tcp'
        ? noise(dice)
        : dice.chance(80)
          ? this.#hello
          : noise(dice)
    const twice = dice.chance(5) ? headerShape(dice, ++this.#id) : Buffer.alloc(0)
    const bytes = Buffer.concat([header, twice, payload])
    const cuts = dice.chance(5)
      ? Array.from({ length: Math.min(bytes.length, 64) }, (_, i) => i + 1)
      : Array.from({ length: dice.below(4) }, () => dice.below(bytes.length + 1)).sort((a, b) => a - b)
    return { edgeEntry, isHop: dice.chance(85), bytes, cuts }
  }

  async #check({ edgeEntry, isHop, bytes, cuts }: Case): Promise<void> {
    const read = isHop ? readStrictly(bytes) : ({ is: 'visitor', ip: STRANGER, rest: bytes } as const)
    const logFrom = this.#world.platform.log.length
    const isAnswered =
      read.is !== 'nothing' && (edgeEntry === 'tcp' ? read.rest.length > 0 : read.rest.equals(this.#hello))
    let answer: Buffer = Buffer.alloc(0)
    for (let tries = 1; tries <= TRIES; tries++) {
      const begunAt = performance.now()
      answer = await this.#send(edgeEntry, isHop ? HOP : STRANGER, bytes, cuts)
      if (!isAnswered || answer.length > 0 || performance.now() - begunAt < SERVER_WAITS_MS) break
    }
    const what = `${edgeEntry}, from ${isHop ? 'a hop' : 'a stranger'}: ${bytes.toString('hex')} cut at ${cuts.join(' ')}`
    if (read.is === 'nothing') {
      this.tally.refused++
      assert.equal(answer.length, 0, `no visitor was named, but there was an answer: ${what}`)
      return
    }
    this.tally.served++
    if (!isHop) {
      const claimed = readStrictly(bytes)
      if (claimed.is === 'visitor') this.#madeUp.add(claimed.ip)
    } else if (read.is === 'visitor') this.#named.add(read.ip)
    if (edgeEntry === 'tcp') assert.deepEqual(answer, read.rest, `other bytes reached the service: ${what}`)
    else if (read.rest.equals(this.#hello)) assert.equal(answer[0], 0x16, `a hello was not answered: ${what}`)
    if (read.is !== 'visitor' || !isHop) return
    // Each visitor has its own address. The quotes matter: an address that was cut short is part of others.
    const shown = [`"ip":"${read.ip}"`, `"peer":"${read.ip}"`]
    if (read.rest.length === 0 && edgeEntry !== 'tcp') return
    await until(`the log names ${read.ip}: ${what}`, () =>
      this.#world.platform.log.slice(logFrom).some((line) => shown.some((text) => line.includes(text))),
    )
  }

  /** Everything that the server sends until it closes, or has answered a hello. */
  async #send(edgeEntry: Case['edgeEntry'], from: string, bytes: Buffer, cuts: readonly number[]): Promise<Buffer> {
    const socket = connect({
      port: this.#ports[edgeEntry],
      host: '127.0.0.1',
      localAddress: from,
      noDelay: true,
      allowHalfOpen: true,
    })
    socket.on('error', () => {})
    const overdue = setTimeout(() => socket.destroy(new Error('overdue')), LIMIT_MS)
    const done = edgeEntry === 'tcp' ? readToEnd(socket) : firstAnswer(socket)
    await Promise.race([once(socket, 'connect').catch(() => {}), done])
    let at = 0
    for (const cut of [...cuts, bytes.length]) {
      if (socket.destroyed) break
      if (cut > at) socket.write(bytes.subarray(at, cut))
      at = Math.max(at, cut)
      await new Promise((resolve) => setImmediate(resolve))
    }
    // After a hello the client waits for the answer: a TLS listener closes when the client ends its side.
    const isHello = edgeEntry !== 'tcp' && bytes.subarray(-this.#hello.length).equals(this.#hello)
    if (!isHello) socket.end()
    const answer = await done
    const isLate = socket.errored?.message === 'overdue'
    clearTimeout(overdue)
    socket.destroy()
    assert.ok(!isLate, `a connection was still open after ${LIMIT_MS} ms: ${bytes.toString('hex')}`)
    return answer
  }
}

function noise(dice: Dice): Buffer {
  return Buffer.from(Array.from({ length: dice.below(200) }, () => dice.below(256)))
}

/** The first bytes; none if the connection closes. */
function firstAnswer(socket: ReturnType<typeof connect>): Promise<Buffer> {
  return new Promise((resolve) => {
    socket.once('data', resolve)
    socket.once('end', () => resolve(Buffer.alloc(0)))
    socket.once('close', () => resolve(Buffer.alloc(0)))
  })
}
