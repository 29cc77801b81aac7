/** What the supervisor and its children say to each other. All of it is plain; a socket goes along with its message. */
import type { AddressInfo } from 'node:net'
import type { CarriedSettings } from '../config/carried-settings.ts'
import type { OwnNode } from '../config/own-node.ts'
import type { SocketName } from './held-sockets.ts'

export type ChildRole = 'control' | 'worker'

/** Where the workers listen, as `host:port`; all at the same addresses. */
export interface WorkerAddresses {
  readonly agents: string
  readonly ssh: string
  readonly https: string
  readonly http: string
  /** Left out by a node on its own. */
  readonly cluster?: string
}

export interface ControlAddresses {
  readonly api: string
  readonly metrics: string
}

/** What the very first start made, to be shown once. */
export interface FirstCredentials {
  readonly userId: string
  readonly apiKey: string
  readonly authtoken: string
}

/** Numbers of the supervisor that the control process shows. */
export interface SupervisorFigures {
  /** Children that ended and were replaced, by role. */
  readonly restarts: Readonly<Record<ChildRole, number>>
  /** Lines of all processes that could not be written. */
  readonly lostLines: number
}

/**
 * What this supervisor and its children say to each other, as a number: after an upgrade the children are newer than the
 * supervisor. To be raised with every change here that an older supervisor cannot live with.
 */
export const SUPERVISION = 2

/** The first message to a child. Its sockets follow, in this order. */
export interface StartMessage {
  readonly type: 'start'
  /** Whether it waits for `go` once its code is loaded: others serve meanwhile. */
  readonly isWaiting: boolean
  readonly settings: CarriedSettings
  /** `w1`, `w2`, … and `c1`, …: unique for the life of the supervisor. */
  readonly id: string
  readonly slot: number
  readonly slots: number
  /** The node that all of them are. */
  readonly node: OwnNode
  /** A folder of this server alone for Unix sockets. */
  readonly folder: string
  /** What workers derive ticket keys from. */
  readonly ticketSecret: Uint8Array
  /** Ports of TCP edges that a service manager handed in. */
  readonly handedPorts: readonly number[]
  /** Where a control process opens its links. */
  readonly linkPath: string
  /** Those that come; others could not be had, and the child tries them itself, which tells why. */
  readonly sockets: readonly SocketName[]
}

export interface SocketMessage {
  readonly type: 'socket'
  readonly name: SocketName
  readonly address: AddressInfo
  /** Nobody serves it meanwhile: who connects is to wait here. Otherwise nobody is let in before this process is ready. */
  readonly isEarly: boolean
}

export interface PortMessage {
  readonly type: 'port'
  readonly request: number
  /** Unless there is an error. */
  readonly address?: AddressInfo
  /** As of a `SocketMessage`. */
  readonly isEarly?: boolean
  /** With a socket, unless there is an error. */
  readonly error?: { readonly message: string; readonly code: string }
}

/** A socket of a worker that is gone, to be served until `unlend`. */
export interface LendMessage {
  readonly type: 'lend'
  readonly name: SocketName
  readonly slot: number
}

export interface UseMessage {
  readonly type: 'use'
  readonly settings: CarriedSettings
  /** What `using` is to say. */
  readonly round: number
}

export type ToChild =
  | StartMessage
  | SocketMessage
  | PortMessage
  | LendMessage
  | { readonly type: 'unlend'; readonly name: SocketName; readonly slot: number }
  /** Settings that were read again; `using` answers. */
  | UseMessage
  /** To a child that waits: start. */
  | { readonly type: 'go' }
  /** To the control process: give up the store and the API, and wait; `paused` answers. */
  | { readonly type: 'pause' }
  /** To a control process that was paused: start again. Its sockets follow, in this order. */
  | { readonly type: 'resume'; readonly sockets: readonly SocketName[] }
  /** To workers: where the control process is to be reached, from now on. */
  | { readonly type: 'control'; readonly path: string }
  /** To the control process: every worker was ready once. */
  | { readonly type: 'workers'; readonly addresses: WorkerAddresses }
  /** To the control process. */
  | { readonly type: 'figures'; readonly figures: SupervisorFigures }
  /** To the control process: the server is ready no more, though it serves on for a while. */
  | { readonly type: 'stopping' }
  /** To the control process: the workers drain. */
  | { readonly type: 'draining' }
  /** Finish what is open within the drain time, then end. */
  | { readonly type: 'drain' }
  /** End in an orderly way, now. */
  | { readonly type: 'stop' }

export type FromChild =
  | LoadedMessage
  /** The settings of `use` hold from now on, or the fault says why not all of them do. */
  | { readonly type: 'using'; readonly round: number; readonly fault?: string }
  /** Of the control process: the store is closed, and nobody is served. */
  | { readonly type: 'paused' }
  /** Of the control process: workers may attach at its link path. */
  | { readonly type: 'listening' }
  | ControlReady
  | WorkerReady
  /** It cannot start, and why; it ends then. */
  | { readonly type: 'failed'; readonly reason: string }
  /** Of a worker: wants the socket of its slot for the port of a TCP edge; `port` answers. */
  | { readonly type: 'openPort'; readonly request: number; readonly port: number }
  | { readonly type: 'closePort'; readonly port: number }

/** Its code is loaded. */
export interface LoadedMessage {
  readonly type: 'loaded'
  readonly version: string
  readonly supervision: number
  /** Whether it answers `use`; not said by children that are older than that answer. */
  readonly answersUse?: boolean
}

export interface ControlReady {
  readonly type: 'ready'
  readonly role: 'control'
  readonly addresses: ControlAddresses
  readonly sshHostKey: string
  readonly firstStart: FirstCredentials | null
}

export interface WorkerReady {
  readonly type: 'ready'
  readonly role: 'worker'
  readonly addresses: WorkerAddresses
}
