/** An exchange: one request of a visitor and its answer, as a data plane remembers and reports it. */
import type { VisitorErrorCode } from './visitor-errors.ts'

export interface SeenExchange {
  readonly id: string
  /** In milliseconds since 1970. */
  readonly startedAt: number
  /** In milliseconds. */
  readonly durationMs: number
  readonly timings: ExchangeTimings
  readonly method: string
  /** Lower case, without port; as sent when it is not a host. */
  readonly host: string
  /** With the query; cut when it is very long. */
  readonly path: string
  readonly isPathCut: boolean
  /** 0 when there was no answer. */
  readonly status: number
  /** The error that the edge answered with. */
  readonly fault: VisitorErrorCode | undefined
  /** Bytes of bodies, or of an upgraded connection. */
  readonly bytesIn: number
  readonly bytesOut: number
  readonly version: '1.1' | '2'
  readonly scheme: 'http' | 'https'
  readonly ip: string
  /** The id of an edge, or of an agent's endpoint. */
  readonly edgeId: string | undefined
  readonly routeId: string | undefined
  /** The owner of the endpoint; undefined for an edge. */
  readonly ownerId: string | undefined
  /** The id of a tunnel, or the address of a static backend. */
  readonly target: string | undefined
  /** The session of its tunnel, while that is online. */
  readonly sessionId: string | undefined
  /** The decisions of modules, by the names of. */
  readonly decided: Readonly<Record<string, string>>
  /** Whether either end left before the exchange was complete. */
  readonly isCut: boolean
  readonly captureId: string | undefined
  /** The exchange that this one repeated. */
  readonly replayOf: string | undefined
}

/** How long each part took, in milliseconds; undefined for parts that were not reached. */
interface ExchangeTimings {
  /** Until all modules had let the request pass. */
  readonly modules: number | undefined
  /** Until there was a connection to the service. */
  readonly dial: number | undefined
  /** From then on until the head of the answer. */
  readonly wait: number | undefined
  /** From there to the end. */
  readonly receive: number | undefined
}

/** Selects exchanges. */
export interface ExchangeFilter {
  readonly edgeId?: string | undefined
  readonly tunnelId?: string | undefined
  readonly method?: string | undefined
  /** A prefix of the path. */
  readonly path?: string | undefined
  readonly status?: number | undefined
  /** Those that began at this time or later, in milliseconds since 1970. */
  readonly since?: number | undefined
  /** Only edges, and endpoints of this owner. */
  readonly ownerId?: string | undefined
}

/**
 * The endpoint that an exchange came through, as the API lists it. In a pool each tunnel has its own endpoint there,
 * while `edgeId` is the same for all of them. Undefined for an edge, and when the exchange reached none.
 */
export function endpointOf({ edgeId, target }: Pick<SeenExchange, 'edgeId' | 'target'>): string | undefined {
  if (!edgeId?.startsWith('ep_')) return undefined
  return target?.startsWith('tn_') ? `ep_${target.slice('tn_'.length)}` : edgeId
}

/** Whether an exchange came through this edge or endpoint. */
export function isThrough(id: string, exchange: Pick<SeenExchange, 'edgeId' | 'target'>): boolean {
  return exchange.edgeId === id || endpointOf(exchange) === id
}

/** The latest exchanges that pass the filter, those before `beforeId` if given, newest first. */
export interface ExchangeQuery {
  readonly filter: ExchangeFilter
  readonly beforeId?: string | undefined
  readonly limit: number
}

/** An exchange with what was kept of its heads and bodies. */
export interface WholeExchange {
  readonly exchange: SeenExchange
  /** The host with its port, as visitors reach it; undefined from a node of an older version. */
  readonly authority?: string | undefined
  /** As the visitor sent it; undefined when it was not kept, or is gone by now. */
  readonly request?: KeptMessage | undefined
  /** As the visitor was answered. */
  readonly response?: KeptMessage | undefined
}

export interface KeptMessage {
  readonly headers: readonly KeptHeader[]
  /** Undefined when bodies were not kept. */
  readonly body?: KeptBody | undefined
}

export interface KeptHeader {
  readonly name: string
  /** Empty when it was masked. */
  readonly value: string
  readonly isMasked: boolean
}

export interface KeptBody {
  /** Bytes of the whole body, and of its beginning that was kept. */
  readonly size: number
  readonly kept: number
  /** `base64` when it is not UTF-8. */
  readonly encoding: 'text' | 'base64'
  readonly content: string
}

/** The exchanges of a data plane since the last poll. */
export interface ExchangeNews {
  /** Where the next poll begins. */
  readonly next: number
  /** Oldest first. */
  readonly exchanges: readonly SeenExchange[]
  /** How many exchanges were left out. */
  readonly missed: number
}

/** Asks to repeat an exchange, unchanged or with changes. */
export interface ReplayAsk {
  readonly id: string
  /** Whether secrets that a capture kept may be sent again. */
  readonly mayUseSecrets: boolean
  readonly method?: string | undefined
  readonly path?: string | undefined
  readonly headers?: readonly { readonly name: string; readonly value: string }[] | undefined
  /** As base64. */
  readonly body?: string | undefined
  /** The address that sends a changed request. */
  readonly callerIp?: string | undefined
}

/** A query about exchanges to the node that has them. */
export type ExchangeAsk =
  | { readonly kind: 'page'; readonly query: ExchangeQuery }
  | { readonly kind: 'one'; readonly id: string }
  | ({ readonly kind: 'replay' } & ReplayAsk)
  /** `seen`: the next number of each data plane; the first poll only finds out these numbers. */
  | { readonly kind: 'news'; readonly seen: Readonly<Record<string, number>>; readonly isFirst: boolean }
