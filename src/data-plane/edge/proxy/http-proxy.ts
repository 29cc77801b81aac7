/** Takes visitors' requests, over any version of HTTP, to the services behind the edge. */
import { AgeList } from '../../../lib/limits/age-list.ts'
import { drawHex } from '../../../lib/secrets/draw-bytes.ts'
import type { Exchange } from '../../requests/http-exchange.ts'
import { noCaptures } from '../../requests/running-captures.ts'
import type { Edge } from '../compiled-edge.ts'
import { errorPages } from '../pages/error-page.ts'
import type { VisitorConnection } from './pick-edge.ts'
import { ProxiedRequest } from './proxied-request.ts'
import type { ProxyTools } from './proxy-tools.ts'

type Optional = 'pages' | 'admits' | 'captures' | 'onRequest' | 'now' | 'newRequestId' | 'idleMs' | 'uploadMs'

type Options = Omit<ProxyTools, Optional | 'open'>

/** By default nothing is kept and everybody is admitted. */
export type HttpProxyOptions = Options & {
  readonly [Tool in Optional]?: ProxyTools[Tool] | undefined
}

/** How long a request may go without a byte in either direction, in milliseconds. */
const IDLE_MS = 5 * 60_000

export class HttpProxy {
  #tools: ProxyTools

  constructor({ now = Date.now, newRequestId = requestId, idleMs = IDLE_MS, ...options }: HttpProxyOptions) {
    const { admits = admitAll, pages = errorPages, captures = noCaptures, uploadMs = idleMs } = options
    const open = new AgeList<ProxiedRequest>()
    this.#tools = {
      onRequest: undefined,
      ...options,
      open,
      admits,
      pages,
      captures,
      now,
      newRequestId,
      idleMs,
      uploadMs,
    }
  }

  /** Sets how long a request may go without a byte, and an upload that nobody takes, from the next request on. */
  useIdleMs(idleMs: number, uploadMs: number): void {
    this.#tools = { ...this.#tools, idleMs, uploadMs }
  }

  /** Ends requests of these edges that are open, also as upgraded connections, and would be refused now. */
  judgeAgain(edgeIds: ReadonlySet<string>, served: (edgeId: string) => Edge | undefined): void {
    for (const request of [...this.#tools.open]) {
      const { edgeId } = request
      if (edgeId !== undefined && edgeIds.has(edgeId)) request.judgeAgain(served(edgeId))
    }
  }

  /** Ends those of visitors that are no longer admitted. */
  dropUnadmitted(): void {
    const { open, admits } = this.#tools
    for (const request of [...open]) if (!admits(request.connection.peer)) request.turnAway('IP_REFUSED')
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
