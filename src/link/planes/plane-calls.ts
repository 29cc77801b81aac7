/**
 * The port between the control plane and a data plane, in one process or in two (see `CallLink`): the calls of each side, all of
 * plain data.
 */
import type { CountedWindow } from '../../lib/limits/sliding-counters.ts'
import type { IpRule } from '../../lib/net/ip-rules.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import type { BrokenEdge } from '../../model/broken-edge.ts'
import type { RunningCapture } from '../../model/capture.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type {
  AddressHolders,
  BindQuestion,
  EndpointRequest,
  GrantedEndpoint,
  ServedEndpoint,
} from '../../model/endpoint.ts'
import type { ExchangeNews, ExchangeQuery, ReplayAsk, SeenExchange, WholeExchange } from '../../model/exchange.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import type { PlaneMetrics } from '../../model/plane-metrics.ts'
import type { PoolDifference } from '../../model/pool.ts'
import type { AgentCommand, PresentEndpoint, PresentSession, PresentTunnel } from '../../model/presence.ts'
import type { LoginEndings, LoginRows } from './login-store.ts'

/** A session that is online at a data plane. */
export interface OnlineSession {
  readonly session: PresentSession
  /** The SSH certificate that it logged in with, if any. */
  readonly certificateId?: string | undefined
}

/** A tunnel that is online at a data plane: what others need to list it and to reach it. */
export interface OnlineTunnel {
  readonly tunnel: PresentTunnel
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly httpVersion: 1 | 2
  readonly endpoint?: { readonly present: PresentEndpoint } & ReservedEndpoint
}

/** The address of a tunnel, and what is served there. */
export interface ReservedEndpoint extends ServedEndpoint {
  /** A key that no two endpoints share, unless they are in a pool. */
  readonly place: string
}

/** A bind's claim to its address. */
export interface Reservation extends ReservedEndpoint {
  readonly tunnelId: string
  readonly sessionId: string
}

/** A tunnel as other data planes of the node see it. */
export interface WorkerTunnel {
  readonly tunnelId: string
  readonly sessionId: string
  readonly planeId: string
  readonly httpVersion: 1 | 2
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** What is served at its address. */
  readonly config?: EdgeConfig | undefined
}

/** A tunnel at another node, as the database had it. It may be gone by now; a dial to that node tells. */
export interface RemoteTunnel
  extends Pick<WorkerTunnel, 'tunnelId' | 'sessionId' | 'planeId' | 'httpVersion' | 'labels'> {
  readonly nodeId: string
  /** The version of its pool, if any; see `ServedEndpoint`. */
  readonly version?: string | undefined
}

/** An address that one or more tunnels at another node have. */
export interface RemoteAddress {
  readonly place: string
  readonly config: EdgeConfig
  /** See `ServedEndpoint`. */
  readonly version: string
  readonly tunnel: RemoteTunnel
}

/** Another node. */
export interface OtherNode {
  readonly nodeId: string
  readonly name: string
  /** Where it listens for other nodes. */
  readonly address: { readonly host: string; readonly port: number }
  /** Where it accepts agents, as `host:port`. */
  readonly agentAddresses: readonly string[]
  /** The node drains, and takes no more agents. */
  readonly isLeaving: boolean
  /** The database was away until now, and may not show all that this node has: what the node had counts for a while. */
  readonly isUnsure?: boolean
  /** It has lost its lease: as long as it answers it is reached, but counts for nothing else. */
  readonly isLost?: boolean
}

/** A restriction on the addresses that may reach a part of the server (D64). */
export interface PartRestriction {
  readonly part: string
  readonly isEnforced: boolean
  readonly rules: readonly IpRule[]
}

/** An uploaded certificate with its key, in PEM. */
export interface ServedCertificate {
  readonly id: string
  readonly cert: string
  readonly key: string
  readonly notAfter: string
}

/** A change of the uploaded certificates and the names for which they are shown. */
export interface CertificateChange {
  /** Everything that was said before is void. */
  readonly isAll: boolean
  /** Certificates that are new or have changed. */
  readonly certificates: readonly ServedCertificate[]
  /** Names, exact or `*.…`, and the id of their certificate. */
  readonly names: readonly (readonly [name: string, certificateId: string])[]
  readonly removedNames: readonly string[]
}

/** A challenge by which a certificate authority checks that a name is served here before it issues a certificate. */
export interface NameChallenge {
  readonly name: string
  readonly kind: 'http-01' | 'tls-alpn-01'
  readonly token: string
  /** The answer that it expects: the key authorization (RFC 8555 §8.1). */
  readonly answer: string
}

/** A further name by which agents reach the server. */
export interface IngressName {
  readonly name: string
  /** Agents are shown the certificate of that name, if there is one; else always one of the server's own authority. */
  readonly isPublic: boolean
}

/** A change of what a data plane mirrors by name. */
export interface MirroredChange<Item extends { readonly name: string }> {
  /** Everything that was said before is void. */
  readonly isAll: boolean
  /** Applied before `set`: a name may be in both. */
  readonly removed: readonly string[]
  readonly set: readonly Item[]
}

/** Why a tunnel is stopped, as told to its agent. */
interface StopReason {
  readonly message: string
  readonly ngrok: number
}

/** What a data plane must know before it can open its listeners. */
export interface PlaneSecrets {
  /** The certificate and key of the server's own authority, in PEM. */
  readonly authority: { readonly cert: string; readonly key: string }
  /** Seals what agents and visitors carry: cookies and tokens. */
  readonly sealingKey: Uint8Array
  /** The private host key of the SSH gateway. */
  readonly sshHostKey: string
}

/** A data plane introduces itself, with all that is online there. */
export interface Attachment {
  readonly planeId: string
  readonly version: string
  /** Whether the plane drains, so that other planes take over what it has. */
  readonly isLeaving?: boolean
  readonly sessions: readonly OnlineSession[]
  readonly tunnels: readonly OnlineTunnel[]
  /** Ids of sessions with a leg there. */
  readonly legs?: readonly string[]
}

/** Another data plane. */
interface OtherPlane {
  readonly planeId: string
}

/** The calls of a data plane to the control plane. */
export type ControlCalls = LoginRows & {
  /** The first call. The control plane then sends all stored configuration, and at last `letVisitorsIn`. */
  attach(plane: Attachment): Promise<void>
  secrets(nothing: null): PlaneSecrets

  findCredential(by: { readonly token: string }): Promise<AgentCredential | undefined>
  /**
   * The last answer of `findCredential` for this token, for an agent that comes back while the database is down; undefined
   * when its session was at another node. Data planes of earlier versions do not send the session.
   */
  recallCredential(by: { readonly token: string; readonly sessionId?: string | undefined }): AgentCredential | undefined
  findSshCredential(by: { readonly fingerprint: string }): Promise<AgentCredential | undefined>
  findSshCertificate(by: {
    readonly digest: string
  }): Promise<{ readonly id: string; readonly authorityBlob: Buffer } | undefined>
  currentCredential(by: { readonly id: string }): Promise<AgentCredential | undefined>
  /** Opens what an earlier version sealed for an agent with the key of the database; undefined when it is not ours. */
  openFormerSeal(sealed: { readonly text: string; readonly context: string }): Promise<string | undefined>

  /**
   * Gives a tunnel its address, and has every other data plane serve it; rejects with `BindRefusal`. A repeated call gives the
   * same again. Data planes of earlier versions ask for the parts of this decision, with the five calls that follow.
   */
  bind(bind: BindQuestion): Promise<GrantedEndpoint>
  bindModules(bind: Pick<EndpointRequest, 'credentialId' | 'proto' | 'opts'>): Promise<unknown>
  holdersOfName(name: string): Promise<AddressHolders>
  holdersOfPort(port: number): Promise<AddressHolders>
  /** Grants the place and has every other data plane serve it; false when another tunnel has it. */
  claim(claim: Reservation): Promise<boolean>
  /** Why a claim was refused, where a pool is or could be; undefined when the place is free by now. */
  whyTaken(claim: Reservation): Promise<PoolDifference | undefined>
  /** Withdraws a bind that failed, or whose answer was lost. */
  unclaim(claim: Pick<Reservation, 'place' | 'tunnelId'>): void
  /** Asks the holders of a place for a sign of life; true when the place is free afterwards. */
  proveAlive(at: { readonly place: string }): Promise<boolean>

  /**
   * An agent comes back: ends its session wherever that is, and returns the session's label tunnels. An agent that moves away
   * from a draining data plane keeps its session there until its tunnels have come over, one by one.
   */
  returning(session: { readonly sessionId: string; readonly isMoving?: boolean }): Promise<readonly FormerLabelTunnel[]>
  /** Whether a session with this credential is online, so that it may have a leg here. */
  mayHaveLeg(session: { readonly sessionId: string; readonly credentialId: string }): boolean
  /**
   * This data plane drains: its agents move to another plane, or come back at one when this plane ends their sessions. `isNode`:
   * the whole node drains, and other nodes know it.
   */
  leaving(nothing: null): Promise<{ readonly isNode: boolean }>
  sessionStarted(session: OnlineSession): void
  sessionEnded(session: { readonly sessionId: string }): void
  /** Resolves when lists show the tunnel and every data plane can reach it. */
  tunnelStarted(tunnel: OnlineTunnel): Promise<void>
  /** The agent has changed the name, description or metadata of a tunnel. */
  tunnelChanged(tunnel: OnlineTunnel): void
  tunnelEnded(tunnel: { readonly tunnelId: string }): void
  /** The server stopped a tunnel, and its agent may not have it again. */
  tunnelStopped(tunnel: { readonly tunnelId: string }): void

  /** The holders of these places at other nodes; places without one are left out. */
  lookUpPlaces(addresses: readonly string[]): Promise<readonly RemoteAddress[]>
  /** Tunnels at other nodes that carry all of these labels. */
  lookUpGroup(labels: Readonly<Record<string, string>>): Promise<readonly RemoteTunnel[]>
  /** Answers a call of another node. For data planes of version 0.1 alone, which read calls, until they have drained. */
  answerNode(call: { readonly nodeId: string; readonly value: unknown }): Promise<unknown>

  /** The certificate and key that sign requests to identity providers. */
  requestKey(nothing: null): Promise<{ readonly certificate: string; readonly key: string }>
}

/** The calls of the control plane to a data plane. */
export type PlaneCalls = {
  /** Sent before `restrict`, so that a plane that knows the restrictions knows these too. */
  ingressNames(change: MirroredChange<IngressName>): void
  restrict(restrictions: readonly PartRestriction[]): void
  certificates(change: CertificateChange): void
  /** Resolves when the plane answers these challenges. */
  challenges(change: MirroredChange<NameChallenge>): void
  /** Ids of the stored edges that are served. */
  storedEdges(nothing: null): readonly string[]
  /**
   * Resolves when they are in force, but for those whose ids it gives: these are served as before until they are compiled. A
   * broken edge does not hold up the others. `isIdle` leaves compiling to the first visitor. Planes of version 0.1 give no ids.
   */
  edges(change: {
    readonly removed: readonly string[]
    readonly applied: readonly EdgeConfig[]
    readonly isIdle: boolean
  }): Promise<readonly string[] | undefined>
  /** Resolves when the latest versions of these edges are compiled and in force. */
  edgesSettled(ids: readonly string[]): Promise<void>
  /** What other data planes have online; `isAll` voids what was sent before. */
  elsewhere(change: {
    readonly isAll: boolean
    readonly added: readonly WorkerTunnel[]
    /** Ids of tunnels. */
    readonly removed: readonly string[]
    /** Ids of tunnels whose data plane is gone: their agents may come back at once. */
    readonly lost: readonly string[]
  }): Promise<void>
  planes(others: readonly OtherPlane[]): void
  /** The other nodes. */
  nodes(others: readonly OtherNode[]): void
  /** Ports that tunnels at other nodes have, and that must be open here too (D60). */
  distantPorts(change: {
    readonly taken: readonly RemoteAddress[]
    /** Places that nobody at another node has. */
    readonly free: readonly string[]
    /** All that are taken; every other one is free. */
    readonly only?: readonly string[]
  }): Promise<void>
  /** All stored configuration has been sent. */
  letVisitorsIn(nothing: null): void

  command(to: { readonly sessionId: string; readonly command: AgentCommand }): Promise<void>
  endSession(session: { readonly sessionId: string; readonly reason: string }): void
  /** Ends every session, leg and standby of a credential. */
  endSessionsOf(credential: { readonly credentialId: string; readonly reason: string }): void
  /** Ends the legs that a session, which is over, has here. */
  endLegs(session: { readonly sessionId: string }): void
  proveAlive(session: { readonly sessionId: string }): Promise<void>
  stopTunnel(tunnel: { readonly tunnelId: string; readonly why: StopReason }): void
  /** A tunnel was stopped at another data plane. */
  tunnelStopped(tunnel: { readonly tunnelId: string }): void
  /** Resolves when none of these logins is valid any more. */
  loginsEnded(endings: LoginEndings): void

  numbers(nothing: null): PlaneMetrics
  /** Stored edges that this plane cannot serve. */
  brokenEdges(nothing: null): readonly BrokenEdge[]
  /** What the rate limits of an edge have counted, at all data planes. */
  counted(edgeId: string): Promise<readonly CountedWindow[]>

  exchanges(query: ExchangeQuery): Promise<readonly SeenExchange[]>
  /** Undefined when this plane does not have it (any more). */
  exchange(by: { readonly id: string }): Promise<WholeExchange | undefined>
  /** Exchanges from this number on, at most the latest `limit`; none without a number. */
  newExchanges(look: { readonly from?: number | undefined; readonly limit: number }): ExchangeNews
  /** Repeats an exchange; gives the id of the new one, and undefined when this plane does not have it. */
  replay(ask: ReplayAsk): Promise<string | undefined>
  /** All captures that run from now on. */
  captures(running: readonly RunningCapture[]): void
}
