/** The messages between the supervisor and its children: plain data, some of it accompanied by a socket. */
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

/** What the very first start created, to be shown once. */
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
 * The version of these messages: after an upgrade the children are newer than the supervisor. Raise it with every change here
 * that an older supervisor cannot handle.
 */
export const SUPERVISION = 2

/** The first message to a child. Its sockets follow, in this order. */
export interface StartMessage {
  readonly type: 'start'
  /** Whether it waits for `go` once its code is loaded, while others serve. */
  readonly isWaiting: boolean
  readonly settings: CarriedSettings
  /** `w1`, `w2`, … and `c1`, …: unique for the life of the supervisor. */
  readonly id: string
  readonly slot: number
  readonly slots: number
  /** The node of all children. */
  readonly node: OwnNode
  /** A folder of this server alone for Unix sockets. */
  readonly folder: string
  /** The secret from which workers derive TLS ticket keys; constant, so that sessions resume at any worker. */
  readonly ticketSecret: Uint8Array
  /** Ports of TCP edges that a service manager handed in. */
  readonly handedPorts: readonly number[]
  /** The path at which a control process listens for workers. */
  readonly linkPath: string
  /** The sockets that follow. Others could not be opened; the child tries these itself, and reports the error. */
  readonly sockets: readonly SocketName[]
}

export interface SocketMessage {
  readonly type: 'socket'
  readonly name: SocketName
  readonly address: AddressInfo
  /** Nobody else serves the socket, so connections wait here. Otherwise this process listens only when it is ready. */
  readonly isEarly: boolean
}

export interface PortMessage {
  readonly type: 'port'
  readonly request: number
  /** Set unless there is an error. */
  readonly address?: AddressInfo
  /** As in a `SocketMessage`. */
  readonly isEarly?: boolean
  /** Set when no socket comes with the message. */
  readonly error?: { readonly message: string; readonly code: string }
}

/** Lends the socket of a worker that is gone, to be served until `unlend`. */
export interface LendMessage {
  readonly type: 'lend'
  readonly name: SocketName
  readonly slot: number
}

export interface UseMessage {
  readonly type: 'use'
  readonly settings: CarriedSettings
  /** The number that `using` repeats. */
  readonly round: number
}

export type ToChild =
  | StartMessage
  | SocketMessage
  | PortMessage
  | LendMessage
  | { readonly type: 'unlend'; readonly name: SocketName; readonly slot: number }
  /** Reloaded settings; `using` answers. */
  | UseMessage
  /** To a child that waits: start. */
  | { readonly type: 'go' }
  /** To the control process: give up the store and the API, and wait; `paused` answers. */
  | { readonly type: 'pause' }
  /** To a control process that was paused: start again. Its sockets follow, in this order. */
  | { readonly type: 'resume'; readonly sockets: readonly SocketName[] }
  /** To workers: where the control process listens from now on. */
  | { readonly type: 'control'; readonly path: string }
  /** To the control process: every worker has been ready once. */
  | { readonly type: 'workers'; readonly addresses: WorkerAddresses }
  /** To the control process. */
  | { readonly type: 'figures'; readonly figures: SupervisorFigures }
  /** To the control process: the server is stopping; it is no longer ready, but serves for a while. */
  | { readonly type: 'stopping' }
  /** To the control process: the workers drain. */
  | { readonly type: 'draining' }
  /** Finish what is open within the drain time, then end. */
  | { readonly type: 'drain' }
  /** Shut down cleanly, now. */
  | { readonly type: 'stop' }

export type FromChild =
  | LoadedMessage
  /** The settings of `use` are in force, or the fault says why not all of them are. */
  | { readonly type: 'using'; readonly round: number; readonly fault?: string }
  /** From the control process: the store is closed, and nobody is served. */
  | { readonly type: 'paused' }
  /** From the control process: workers may attach at its link path. */
  | { readonly type: 'listening' }
  | ControlReady
  | WorkerReady
  /** The child cannot start, and will end; the reason why. */
  | { readonly type: 'failed'; readonly reason: string }
  /** From a worker: asks for the socket of its slot for the port of a TCP edge; `port` answers. */
  | { readonly type: 'openPort'; readonly request: number; readonly port: number }
  | { readonly type: 'closePort'; readonly port: number }

/** The code of the child is loaded. */
export interface LoadedMessage {
  readonly type: 'loaded'
  readonly version: string
  readonly supervision: number
  /** Whether it answers `use`; missing from older children, which do not. */
  readonly answersUse?: boolean
}

export interface ControlReady {
  readonly type: 'ready'
  readonly role: 'control'
  readonly addresses: ControlAddresses
  readonly sshHostKey: string
  readonly firstStart: FirstCredentials | null
}

interface WorkerReady {
  readonly type: 'ready'
  readonly role: 'worker'
  readonly addresses: WorkerAddresses
}
