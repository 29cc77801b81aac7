/** The calls of other nodes on their way from the data plane that they reach to the control plane that answers them. */
import type { Duplex } from 'node:stream'
import { relay } from '../../lib/bytes/relay.ts'
import { Groups } from '../../lib/multi-map.ts'
import type { Mux } from '../wire/mux.ts'
import { typeHead } from '../wire/stream-types.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { buildPart, readPart } from './dial-header.ts'
import { CALL_TYPE, MAX_CALLS, NodeCalls, type NodeCallsOptions, refuseCall } from './node-calls.ts'
import type { NodePlane } from './node-identity.ts'
import { relaySession } from './relay-session.ts'

/** How long a call may be without a byte in either direction, in milliseconds: longer than its answer may take. */
const IDLE_MS = 60_000

interface PassedCallsOptions {
  /** Opens a connection to the control plane of this node. */
  readonly connect: () => Duplex
  /** Instead of the limits above and of `NodeCalls`, for tests. */
  readonly idleMs?: number
  readonly maxCalls?: number
}

/** The end of the data plane, which has verified which node calls, and passes on bytes that it does not read. */
export class PassedCalls {
  readonly #options: PassedCallsOptions
  readonly #open = new Groups<WireStream>()
  #session: Mux | undefined

  constructor(options: PassedCallsOptions) {
    this.#options = options
  }

  /** Takes a stream with a call. */
  accept(stream: WireStream, from: NodePlane): void {
    const { connect, idleMs = IDLE_MS, maxCalls = MAX_CALLS } = this.#options
    if ([...this.#open.get(from.nodeId)].length >= maxCalls) {
      refuseCall(stream)
      return
    }
    if (!this.#session || this.#session.isClosed) {
      this.#session = relaySession(connect(), { opens: true, onStream: (strange) => strange.reset(), onClosed() {} })
    }
    const head = buildPart(from) ?? Buffer.alloc(0) // never: ids are short
    const there = this.#session.open(Buffer.concat([typeHead(CALL_TYPE), head]))
    if (there instanceof WireError) {
      // The caller calls again, as when the control process ends during a call.
      stream.reset()
      return
    }
    this.#open.add(from.nodeId, stream)
    relay(stream, there, { idleMs, onDone: () => this.#open.delete(from.nodeId, stream) })
  }

  close(): void {
    this.#session?.close()
  }
}

/** The end of the control plane. */
export class AnsweredCalls {
  readonly #calls: NodeCalls
  readonly #sessions = new Set<Mux>()

  constructor(options: NodeCallsOptions) {
    this.#calls = new NodeCalls(options)
  }

  /** Takes a connection of a data plane. */
  take(socket: Duplex): void {
    const session = relaySession(socket, {
      opens: false,
      onStream: (stream) => {
        readPart(stream, (bytes) => {
          // The data plane wrote the identity that it has verified.
          if (bytes) this.#calls.accept(stream, JSON.parse(bytes.toString()) as NodePlane)
          else stream.reset()
        })
      },
      onClosed: () => this.#sessions.delete(session),
    })
    this.#sessions.add(session)
  }

  close(): void {
    for (const session of [...this.#sessions]) session.close()
    this.#calls.close()
  }
}
