/** Authentication: who an agent is, and the server's answer. */
import { Secret } from '../../../lib/secrets/secret.ts'
import type { Message } from '../agent-rpc.ts'
import { DEFAULT_INTERVAL_MS, DEFAULT_TOLERANCE_MS } from '../heartbeat.ts'
import type { WireError } from '../wire-error.ts'
import { MAX_NODE_ADDRESSES } from './command-messages.ts'
import { MessageFields } from './message-fields.ts'

export interface AuthRequest {
  /** Protocol versions, preferred first. */
  readonly versions: readonly string[]
  /** The session to resume; `''` for a new one. */
  readonly clientId: string
  readonly authtoken: Secret
  /** The cookie of the last answer, for resuming. */
  readonly cookie: Secret
  readonly os: string
  readonly arch: string
  readonly version: string
  readonly clientType: string
  readonly userAgent: string
  readonly hostname: string
  readonly metadata: string
  readonly heartbeatIntervalMs: number
  readonly heartbeatToleranceMs: number
  /** Per command: `''` when supported, else why not; null from agents that do not know the command. */
  readonly updateUnsupported: string | null
  readonly stopUnsupported: string | null
  readonly restartUnsupported: string | null
  /** Number of the connection within a session; 0 is the first. */
  readonly leg: number
  /** Largest window of a stream that the agent can use, in bytes; 0 from agents that are not ours. */
  readonly windowBytes: number
  /** Whether it can move to a new connection during its session; false from agents that are not ours. */
  readonly canMove: boolean
  /** Whether it accepts a list of other nodes and can move to one; false from older agents, and those not ours. */
  readonly knowsNodes: boolean
  /** Whether this connection takes over from another one of the same session, which is still open. */
  readonly isMoving: boolean
  /** The id of a node that must not accept it, since the agent has another session there; `''` for none. */
  readonly notAt: string
  /**
   * For a further connection of a session, with a `leg` of 1 or more: ids of the data planes that have one already.
   * Undefined from agents that are not ours, whose legs are sessions of their own.
   */
  readonly heldPlanes?: readonly string[] | undefined
  /**
   * Set for a standby: its session is at another node, and begins here when that is lost. `clientId` and `cookie` are
   * empty then, since older servers would resume that session at once. Undefined from agents that are not ours.
   */
  readonly standbyOf?: { readonly clientId: string; readonly cookie: Secret } | undefined
}

/** Versions of the protocol that we speak. */
const versions = ['3', '2'] as const

/** The first of the agent's versions that we speak; undefined when there is none. */
export function chooseVersion(offered: readonly string[]): string | undefined {
  return offered.find((version) => versions.some((known) => known === version))
}

export function parseAuth(message: Message): AuthRequest | WireError {
  return MessageFields.parse(message, (fields) => {
    const extra = fields.object('Extra')
    return {
      versions: fields.texts('Version'),
      clientId: fields.text('ClientId'),
      authtoken: new Secret(extra.text('Authtoken')),
      cookie: new Secret(extra.text('Cookie')),
      os: extra.text('OS'),
      arch: extra.text('Arch'),
      version: extra.text('Version'),
      clientType: extra.text('ClientType'),
      userAgent: extra.text('UserAgent'),
      hostname: extra.text('Hostname'),
      metadata: extra.text('Metadata'),
      heartbeatIntervalMs: milliseconds(extra.count('HeartbeatInterval')) || DEFAULT_INTERVAL_MS,
      heartbeatToleranceMs: milliseconds(extra.count('HeartbeatTolerance')) || DEFAULT_TOLERANCE_MS,
      updateUnsupported: extra.optionalText('UpdateUnsupportedError'),
      stopUnsupported: extra.optionalText('StopUnsupportedError'),
      restartUnsupported: extra.optionalText('RestartUnsupportedError'),
      leg: extra.count('LegNumber'),
      windowBytes: extra.count('StreamWindow'),
      canMove: extra.flag('CanMove'),
      knowsNodes: extra.flag('KnowsNodes'),
      isMoving: extra.flag('Moving'),
      notAt: extra.text('NotAtNode'),
      heldPlanes: extra.flag('FurtherLeg') ? extra.texts('HeldPlanes') : undefined,
      standbyOf: extra.flag('Standby')
        ? { clientId: extra.text('StandbyClientId'), cookie: new Secret(extra.text('StandbyCookie')) }
        : undefined,
    }
  })
}

export function buildAuth(request: AuthRequest): Message {
  return {
    Version: request.versions,
    ClientId: request.clientId,
    Extra: {
      OS: request.os,
      Arch: request.arch,
      Authtoken: request.authtoken.reveal(),
      Version: request.version,
      ClientType: request.clientType,
      UserAgent: request.userAgent,
      Hostname: request.hostname,
      Metadata: request.metadata,
      Cookie: request.cookie.reveal(),
      HeartbeatInterval: nanoseconds(request.heartbeatIntervalMs),
      HeartbeatTolerance: nanoseconds(request.heartbeatToleranceMs),
      UpdateUnsupportedError: request.updateUnsupported,
      StopUnsupportedError: request.stopUnsupported,
      RestartUnsupportedError: request.restartUnsupported,
      LegNumber: request.leg,
      ...(request.windowBytes > 0 && { StreamWindow: request.windowBytes }),
      ...(request.canMove && { CanMove: true }),
      ...(request.knowsNodes && { KnowsNodes: true }),
      ...(request.isMoving && { Moving: true }),
      ...(request.notAt !== '' && { NotAtNode: request.notAt }),
      ...(request.heldPlanes && { FurtherLeg: true, HeldPlanes: request.heldPlanes }),
      ...(request.standbyOf && {
        Standby: true,
        StandbyClientId: request.standbyOf.clientId,
        StandbyCookie: request.standbyOf.cookie.reveal(),
      }),
    },
  }
}

export interface AuthAnswer {
  readonly version: string
  readonly clientId: string
  readonly cookie: Secret
  readonly serverVersion: string
  readonly region: string
  readonly accountName: string
  readonly planName: string
  readonly banner: string
  /** Lifetime of the session, in seconds; 0 is for ever. */
  readonly sessionDurationS: number
  /** The id that the API shows for the session. */
  readonly sessionId: string
  /** The agreed window, in bytes; 0 is not sent. */
  readonly windowBytes: number
  /** The data plane of the connection; `''` is not sent. */
  readonly planeId: string
  /** How many data planes the server has; an agent may have a connection to each. */
  readonly planeCount: number
  /** The node of the connection; `''` is not sent. */
  readonly nodeId: string
  /** Where other nodes accept agents, as `host:port`; sent with `nodeId`. */
  readonly nodeAddresses: readonly string[]
  /** Whether the connection is a standby. False from older servers, which have begun a new session. */
  readonly isStandby: boolean
}

export function buildAuthAnswer(answer: AuthAnswer): Message {
  return {
    Version: answer.version,
    ClientId: answer.clientId,
    Error: '',
    Extra: {
      Version: answer.serverVersion,
      Region: answer.region,
      Cookie: answer.cookie.reveal(),
      AccountName: answer.accountName,
      PlanName: answer.planName,
      Banner: answer.banner,
      SessionDuration: answer.sessionDurationS,
      DeprecationWarning: null,
      ConnectAddresses: [],
      AgentSessionID: answer.sessionId,
      ...(answer.windowBytes > 0 && { StreamWindow: answer.windowBytes }),
      ...(answer.planeId !== '' && { Plane: answer.planeId, Planes: answer.planeCount }),
      ...(answer.nodeId !== '' && { Node: answer.nodeId, NodeAddresses: answer.nodeAddresses }),
      ...(answer.isStandby && { Standby: true }),
    },
  }
}

/** A refusal; agents expect the other fields even here. */
export function buildAuthRefusal(error: string): Message {
  return { Version: '', ClientId: '', Error: error, Extra: {} }
}

/** `error` is `''` when the agent is accepted. */
export function parseAuthAnswer(message: Message): { error: string; answer: AuthAnswer } | WireError {
  return MessageFields.parse(message, (fields) => {
    const extra = fields.object('Extra')
    const answer = {
      version: fields.text('Version'),
      clientId: fields.text('ClientId'),
      cookie: new Secret(extra.text('Cookie')),
      serverVersion: extra.text('Version'),
      region: extra.text('Region'),
      accountName: extra.text('AccountName'),
      planName: extra.text('PlanName'),
      banner: extra.text('Banner'),
      sessionDurationS: extra.count('SessionDuration'),
      sessionId: extra.text('AgentSessionID'),
      windowBytes: extra.count('StreamWindow'),
      planeId: extra.text('Plane'),
      planeCount: extra.count('Planes') || 1,
      nodeId: extra.text('Node'),
      nodeAddresses: extra.texts('NodeAddresses').slice(0, MAX_NODE_ADDRESSES),
      isStandby: extra.flag('Standby'),
    }
    return { error: fields.text('Error'), answer }
  })
}

/** Makes a standby the connection of its session. */
export interface Begin {
  /** Whether it takes over from another connection of the same session, which is still open. */
  readonly isMoving: boolean
}

export function buildBegin({ isMoving }: Begin): Message {
  return { Moving: isMoving }
}

export function parseBegin(message: Message): Begin | WireError {
  return MessageFields.parse(message, (fields) => ({ isMoving: fields.flag('Moving') }))
}

/** Confirms that the session has begun. The other nodes may have changed since the standby connected. */
export type BeginAnswer = Pick<AuthAnswer, 'nodeAddresses'>

export function buildBeginAnswer({ nodeAddresses }: BeginAnswer): Message {
  return { Error: '', NodeAddresses: nodeAddresses }
}

/** `error` is `''` when the session has begun. */
export function parseBeginAnswer(message: Message): { error: string; answer: BeginAnswer } | WireError {
  return MessageFields.parse(message, (fields) => {
    const nodeAddresses = fields.texts('NodeAddresses').slice(0, MAX_NODE_ADDRESSES)
    return { error: fields.text('Error'), answer: { nodeAddresses } }
  })
}

const NANOSECONDS_PER_MILLISECOND = 1_000_000

function milliseconds(nanoseconds: number): number {
  return Math.ceil(nanoseconds / NANOSECONDS_PER_MILLISECOND)
}

function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * NANOSECONDS_PER_MILLISECOND)
}
