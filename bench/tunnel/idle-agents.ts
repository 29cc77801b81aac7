/**
 * Many idle agents in one process: each has its own TLS connection and session, one HTTP endpoint, and heartbeats, like
 * an agent of ours that nobody visits. Prints `ready` when all are online, and fails when one is lost.
 *
 * Arguments: how many, host, port, file of the CA. The authtoken is in BENCH_AUTHTOKEN.
 */
import { readFileSync } from 'node:fs'
import { connect, type TLSSocket } from 'node:tls'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { GROWN_WINDOW_BYTES } from '../../src/wire/bounds.ts'
import { answerPings, DEFAULT_INTERVAL_MS, DEFAULT_TOLERANCE_MS, Heartbeat } from '../../src/wire/heartbeat.ts'
import { buildAuth, parseAuthAnswer } from '../../src/wire/messages/auth.ts'
import { buildBind, parseBindAnswer } from '../../src/wire/messages/bind.ts'
import { Mux } from '../../src/wire/mux.ts'
import { serverTraits } from '../../src/wire/peer.ts'
import { call, type Message } from '../../src/wire/rpc.ts'
import { type StreamType, streamTypes } from '../../src/wire/stream-types.ts'
import { socketTransport } from '../../src/wire/transport.ts'
import { WireError } from '../../src/wire/wire-error.ts'

/** How many connect at the same time. */
const AT_ONCE = 16

const [count = '', host = '', port = '', caFile = ''] = process.argv.slice(2)
const authtoken = new Secret(process.env.BENCH_AUTHTOKEN ?? '')
const ca = readFileSync(caFile)
const auth = {
  versions: ['3', '2'],
  clientId: '',
  authtoken,
  cookie: new Secret(''),
  os: 'linux',
  arch: process.arch,
  version: '0.0.0',
  clientType: 'bench',
  userAgent: 'postern-bench/0.0.0',
  hostname: 'bench',
  metadata: '',
  heartbeatIntervalMs: DEFAULT_INTERVAL_MS,
  heartbeatToleranceMs: DEFAULT_TOLERANCE_MS,
  updateUnsupported: 'a bench',
  stopUnsupported: 'a bench',
  restartUnsupported: 'a bench',
  leg: 0,
  canMove: false,
  isMoving: false,
  windowBytes: GROWN_WINDOW_BYTES,
}

const bind = {
  id: '',
  proto: 'http',
  forwardsTo: 'http://localhost:80',
  forwardsProto: '' as const,
  opts: {},
  token: new Secret(''),
  metadata: '',
  bindings: [],
  poolingEnabled: false,
  name: '',
  description: '',
}

let isStopping = false
process.once('SIGTERM', () => {
  isStopping = true
  process.exit(0)
})

let left = Number(count)
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) await goOnline()
  }),
)
console.log('ready')

async function goOnline(): Promise<void> {
  const mux = new Mux({
    role: 'agent',
    transport: socketTransport(await dial()),
    onStream: (stream, type) => {
      if (type === streamTypes.heartbeat) answerPings(stream)
      else stream.reset('stream_refused')
    },
    onClosed: (error) => lost(error),
  })
  mux.adapt(serverTraits())
  const { error } = known(parseAuthAnswer(await asked(mux, streamTypes.auth, buildAuth(auth))))
  if (error !== '') throw new Error(`an agent was refused: ${error}`)
  const bound = known(parseBindAnswer(await asked(mux, streamTypes.bind, buildBind(bind))))
  if (bound.error !== '') throw new Error(`a bind was refused: ${bound.error}`)
  new Heartbeat(mux, { onDead: lost })
}

function dial(): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), servername: 'localhost', ca })
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

async function asked(mux: Mux, type: StreamType, message: Message): Promise<Message> {
  return known(await call(mux, type, message))
}

function known<T>(result: T | WireError): T {
  if (result instanceof WireError) throw result
  return result
}

function lost(error: WireError | undefined): void {
  if (isStopping) return
  console.error(`an agent was lost: ${error?.message ?? 'the server ended its session'}`)
  process.exit(1)
}
