/** Authentication: who an agent is, and the server's answer. */
import { Secret } from '../../../lib/secrets/secret.ts'
import type { Message } from '../agent-rpc.ts'
import { DEFAULT_INTERVAL_MS, DEFAULT_TOLERANCE_MS } from '../heartbeat.ts'
import { MAX_NODE_ADDRESSES } from './command-messages.ts'
import {
  count,
  field,
  flag,
  joined,
  type MessageOf,
  messageForm,
  optionalText,
  secret,
  sentIf,
  text,
  texts,
} from './message-form.ts'

const authForm = messageForm(
  {
    /** Protocol versions, preferred first. */
    versions: texts('Version'),
    /** The session to resume; `''` for a new one. */
    clientId: text('ClientId'),
  },
  {
    os: text('OS'),
    arch: text('Arch'),
    authtoken: secret('Authtoken'),
    version: text('Version'),
    clientType: text('ClientType'),
    userAgent: text('UserAgent'),
    hostname: text('Hostname'),
    metadata: text('Metadata'),
    /** The cookie of the last answer, for resuming. */
    cookie: secret('Cookie'),
    heartbeatIntervalMs: milliseconds('HeartbeatInterval', DEFAULT_INTERVAL_MS),
    heartbeatToleranceMs: milliseconds('HeartbeatTolerance', DEFAULT_TOLERANCE_MS),
    /** Per command: `''` when supported, else why not; null from agents that do not know the command. */
    updateUnsupported: optionalText('UpdateUnsupportedError'),
    stopUnsupported: optionalText('StopUnsupportedError'),
    restartUnsupported: optionalText('RestartUnsupportedError'),
    /** Number of the connection within a session; 0 is the first. */
    leg: count('LegNumber'),
    /** Largest window of a stream that the agent can use, in bytes; 0 from agents that are not ours. */
    windowBytes: sentIf('windowBytes', count('StreamWindow')),
    /** Whether it can move to a new connection during its session; false from agents that are not ours. */
    canMove: sentIf('canMove', flag('CanMove')),
    /** Whether it accepts a list of other nodes and can move to one; false from older agents, and those not ours. */
    knowsNodes: sentIf('knowsNodes', flag('KnowsNodes')),
    /** Whether this connection takes over from another one of the same session, which is still open. */
    isMoving: sentIf('isMoving', flag('Moving')),
    /** The id of a node that must not accept it, since the agent has another session there; `''` for none. */
    notAt: sentIf('notAt', text('NotAtNode')),
    /**
     * For a further connection of a session, with a `leg` of 1 or more: ids of the data planes that have one already.
     * Undefined from agents that are not ours, whose legs are sessions of their own.
     */
    heldPlanes: joined(
      (fields) => (fields.flag('FurtherLeg') ? fields.texts('HeldPlanes') : undefined),
      (planes) => planes && { FurtherLeg: true, HeldPlanes: planes },
    ),
    /**
     * Set for a standby: its session is at another node, and begins here when that is lost. `clientId` and `cookie` are
     * empty then, since older servers would resume that session at once. Undefined from agents that are not ours.
     */
    standbyOf: joined(
      (fields) =>
        fields.flag('Standby')
          ? { clientId: fields.text('StandbyClientId'), cookie: new Secret(fields.text('StandbyCookie')) }
          : undefined,
      (of) => of && { Standby: true, StandbyClientId: of.clientId, StandbyCookie: of.cookie.reveal() },
    ),
  },
)

export type AuthRequest = MessageOf<typeof authForm>
export const { parse: parseAuth, build: buildAuth } = authForm

/** Versions of the protocol that we speak. */
const versions = ['3', '2'] as const

/** The first of the agent's versions that we speak; undefined when there is none. */
export function chooseVersion(offered: readonly string[]): string | undefined {
  return offered.find((version) => versions.some((known) => known === version))
}

const nodeAddresses = field<readonly string[]>('NodeAddresses', (fields) =>
  fields.texts('NodeAddresses').slice(0, MAX_NODE_ADDRESSES),
)

const authAnswerForm = messageForm(
  { version: text('Version'), clientId: text('ClientId'), Error: '' },
  {
    serverVersion: text('Version'),
    region: text('Region'),
    cookie: secret('Cookie'),
    accountName: text('AccountName'),
    planName: text('PlanName'),
    banner: text('Banner'),
    /** Lifetime of the session, in seconds; 0 is for ever. */
    sessionDurationS: count('SessionDuration'),
    DeprecationWarning: null,
    ConnectAddresses: [],
    /** The id that the API shows for the session. */
    sessionId: text('AgentSessionID'),
    /** The agreed window, in bytes; 0 is not sent. */
    windowBytes: sentIf('windowBytes', count('StreamWindow')),
    /** The data plane of the connection; `''` is not sent. */
    planeId: sentIf('planeId', text('Plane')),
    /** How many data planes the server has; an agent may have a connection to each. */
    planeCount: sentIf(
      'planeId',
      field('Planes', (fields) => fields.count('Planes') || 1),
    ),
    /** The node of the connection; `''` is not sent. */
    nodeId: sentIf('nodeId', text('Node')),
    /** Where other nodes accept agents, as `host:port`; sent with `nodeId`. */
    nodeAddresses: sentIf('nodeId', nodeAddresses),
    /** Whether the connection is a standby. False from older servers, which have begun a new session. */
    isStandby: sentIf('isStandby', flag('Standby')),
  },
)

export type AuthAnswer = MessageOf<typeof authAnswerForm>
export const { parseAnswer: parseAuthAnswer, build: buildAuthAnswer } = authAnswerForm

/** A refusal; agents expect the other fields even here. */
export function buildAuthRefusal(error: string): Message {
  return { Version: '', ClientId: '', Error: error, Extra: {} }
}

/** Makes a standby the connection of its session; `isMoving` is as in a request. */
const beginForm = messageForm({ isMoving: flag('Moving') })

export type Begin = MessageOf<typeof beginForm>
export const { parse: parseBegin, build: buildBegin } = beginForm

/** Confirms that the session has begun. The other nodes may have changed since the standby connected. */
const beginAnswerForm = messageForm({ Error: '', nodeAddresses })

export type BeginAnswer = MessageOf<typeof beginAnswerForm>
export const { parseAnswer: parseBeginAnswer, build: buildBeginAnswer } = beginAnswerForm

const NANOSECONDS_PER_MILLISECOND = 1_000_000

/** A time that is sent in nanoseconds. */
function milliseconds(name: string, byDefault: number) {
  return field(
    name,
    (fields) => Math.ceil(fields.count(name) / NANOSECONDS_PER_MILLISECOND) || byDefault,
    (ms) => Math.round(ms * NANOSECONDS_PER_MILLISECOND),
  )
}
