/** D104, A7: idle connections of one source give way to other visitors when descriptors run short. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { Descriptors } from '../../../src/lib/files/descriptors.ts'
import { createLog } from '../../../src/lib/log/create-log.ts'
import { until } from '../../support/until.ts'
import { clientHello } from '../edges/client-hello.ts'
import { recorder, shouts } from '../edges/upstreams.ts'
import { askHttp1, askHttp2, dial, dialled, http2Over } from '../edges/visitor.ts'
import { World } from '../edges/world.ts'

const ATTACKER = '127.0.0.66'
const BYSTANDER = '127.0.0.9'
const HOP = '127.0.0.2'
const CROWD = 24
const NEWCOMERS = 8

/** A world whose limit of descriptors can be moved to what is open. */
async function start() {
  let limit = 'unlimited'
  const descriptors = new Descriptors({
    log: createLog({ format: 'json', destination: { write: () => true } }),
    system: {
      limits: async () => `Max open files            ${limit}     ${limit}    files\n`,
      tryOpen: async () => {},
      close: async () => {},
    },
  })
  // One plane: each decides for itself.
  const world = await World.start({ descriptors, planeCount: 1, flags: { 'trusted-proxies': `${HOP}/32` } })
  const edge = await world.httpsTo(await recorder(world, (_, response) => response.end('here')))
  const tcp = await world.tcpEdge({ backend: await world.toAddress(await shouts(world)) })
  const entry = { name: edge.name, port: world.platform.httpsPort, ca: world.platform.ca }
  /** From now on a visitor is one too many. */
  const runShort = async (): Promise<void> => {
    const free = openSync('/dev/null', 'r')
    closeSync(free)
    // The part of the limit that visitors may use.
    limit = String(free < 192 ? Math.floor((free * 4) / 3) : free + 64)
    await descriptors.look()
  }
  const stopShort = async (): Promise<void> => {
    limit = 'unlimited'
    await descriptors.look()
  }
  const plainSocket = async (port: number, localAddress = ATTACKER): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  /** A visitor of a trusted proxy. */
  const through = async (ip: string): Promise<Socket> => {
    const socket = await plainSocket(world.platform.httpPort, HOP)
    socket.write(`PROXY TCP4 ${ip} 127.0.0.1 4000 80\r\n`)
    return socket
  }
  return { world, entry, through, tcp, descriptors, runShort, stopShort, plainSocket }
}

type Started = Awaited<ReturnType<typeof start>>

let started: Started
before(async () => {
  started = await start()
})
after(() => started.world.stop())

/** Whether `socket` is answered when it speaks, as an open connection of a TCP edge is. */
async function echoes(socket: Socket): Promise<boolean> {
  socket.write('x')
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  return bytes.length > 0
}

const crowds: readonly [what: string, come: (started: Started) => Promise<Socket>][] = [
  [
    'connections to the plain listener that say nothing',
    ({ world, plainSocket }) => plainSocket(world.platform.httpPort),
  ],
  [
    'connections to the TLS listener that say nothing',
    ({ world, plainSocket }) => plainSocket(world.platform.httpsPort),
  ],
  ['visitors of a trusted proxy, of one address', ({ through }) => through('198.51.100.1')],
  [
    'handshakes that stop half-way',
    async ({ entry, plainSocket }) => {
      const hello = await clientHello((port) => dial({ ...entry, port }))
      const socket = await plainSocket(entry.port)
      socket.write(hello)
      await once(socket, 'data')
      return socket
    },
  ],
  [
    'HTTP/1.1 connections that are kept alive',
    async ({ entry }) => {
      const socket = await dialled(entry, { from: ATTACKER })
      await askHttp1(socket, entry)
      return socket
    },
  ],
  [
    'HTTP/2 connections without requests',
    async ({ entry }) => {
      const socket = await dialled(entry, { from: ATTACKER, version: '2' })
      await askHttp2(http2Over(socket, entry), entry)
      return socket
    },
  ],
]

for (const [what, come] of crowds) {
  test(`${what}: the oldest of the source that has most give way, and nobody else is refused`, async (t) => {
    const { world, entry, tcp, descriptors, runShort, stopShort, plainSocket, through } = started
    await stopShort()
    const refusedBefore = descriptors.refused
    const stream = await plainSocket(tcp.port)
    const attackers: Socket[] = []
    const bystanders: Socket[] = []
    assert.ok(await echoes(stream))
    const others = [await through('198.51.100.2'), await through('198.51.100.3')]
    t.after(() => {
      for (const socket of [stream, ...attackers, ...bystanders, ...others]) socket.destroy()
    })
    for (let i = 0; i < CROWD; i++) attackers.push(await come(started))
    await until('all are served', async () => {
      const text = await (await fetch(world.platform.metricsUrl)).text()
      return Number(/postern_connections_open\{door="visitors"\} (\d+)/.exec(text)?.[1]) > CROWD
    })

    for (let i = 0; i < NEWCOMERS; i++) {
      await runShort()
      const socket = await dialled(entry, { from: BYSTANDER })
      bystanders.push(socket)
      assert.equal((await askHttp1(socket, entry)).status, 200, `newcomer ${i}`)
    }
    assert.ok(descriptors.refused > refusedBefore, 'somebody gave way')
    await until('attackers are gone', () => attackers.some(({ closed }) => closed))

    // More attackers push out their own.
    for (let i = 0; i < 4; i++) {
      await runShort()
      attackers.push(await come(started))
    }
    for (const socket of bystanders) assert.equal((await askHttp1(socket, entry)).status, 200)
    for (const socket of others) assert.equal((await askHttp1(socket, entry)).status, 307)
    assert.ok(await echoes(stream), 'a stream never gives way')
  })
}
