/** Takes visitors' requests, over any version of HTTP, to the services behind the edge. */
import type { Clock } from '../../../lib/clock.ts'
import { drawHex } from '../../../lib/secrets/draw-bytes.ts'
import type { Peer } from '../../../modules/phases.ts'
import type { AccessRecord } from '../../requests/access-record.ts'
import type { Exchange } from '../../requests/http-exchange.ts'
import { type EdgeCaptures, noCaptures } from '../../requests/running-captures.ts'
import { type ErrorPages, errorPages } from '../pages/error-page.ts'
import type { VisitorConnection } from './pick-edge.ts'
import { ProxiedRequest } from './proxied-request.ts'
import type { ProxyTools } from './proxy-tools.ts'

export interface HttpProxyOptions
  extends Pick<ProxyTools, 'edges' | 'lookUp' | 'pool' | 'sweep' | 'bodyMemory' | 'log' | 'publicHttpsPort'> {
  /** The error pages for visitors; called for each error. */
  readonly pages?: (() => ErrorPages) | undefined
  /** Whether a visitor may reach any public address; called for every request. By default all may. */
  readonly admits?: ((peer: Peer) => boolean) | undefined
  /** Called once for each request, when it is over. */
  readonly onRequest?: (record: AccessRecord) => void
  /** The edges whose heads and bodies are kept; none by default. */
  readonly captures?: EdgeCaptures | undefined
  readonly now?: Clock
  readonly newRequestId?: () => string
  readonly idleMs?: number
}

/** How long a request may go without a byte in either direction, in milliseconds. */
const IDLE_MS = 5 * 60_000

export class HttpProxy {
  #tools: ProxyTools

  constructor({ now = Date.now, newRequestId = requestId, idleMs = IDLE_MS, ...options }: HttpProxyOptions) {
    const { admits = admitAll, pages = errorPages, captures = noCaptures } = options
    this.#tools = { onRequest: undefined, ...options, admits, pages, captures, now, newRequestId, idleMs }
  }

  /** Sets how long a request may go without a byte, from the next request on. */
  useIdleMs(idleMs: number): void {
    this.#tools = { ...this.#tools, idleMs }
  }

  /** Answers `exchange`, which came over `connection`. Never throws. */
  handle(exchange: Exchange, connection: VisitorConnection): void {
    new ProxiedRequest(this.#tools, exchange, connection).start()
  }
}

const admitAll = (): boolean => true

/** Bytes of a request id. */
const ID_BYTES = 16

const requestId = (): string => drawHex(ID_BYTES)
