/** Messages to an agent: to restart, stop or update itself, to end one tunnel, to move, and a list of nodes. */
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './message-fields.ts'

/** Objects, because some agents would wait for ever for the object of an empty message. */
export const restartCommand: Message = {}
export const stopCommand: Message = {}
/** The server is about to close this connection: the agent must open another, bind there, and leave this one. */
export const moveMessage: Message = {}

/** The most addresses of other nodes that are sent to an agent, and that it keeps. */
export const MAX_NODE_ADDRESSES = 16

/** Where other nodes accept agents, as `host:port`. In a `move` it means that this node is about to stop. */
export function buildNodes(addresses: readonly string[]): Message {
  return { NodeAddresses: addresses.slice(0, MAX_NODE_ADDRESSES) }
}

/** Empty when the server sends none. */
export function parseNodes(message: Message): readonly string[] | WireError {
  return MessageFields.parse(message, (fields) => fields.texts('NodeAddresses').slice(0, MAX_NODE_ADDRESSES))
}

export interface UpdateCommand {
  /** `''` means the newest. */
  readonly version: string
  readonly permitMajorVersion: boolean
}

export function buildUpdate({ version, permitMajorVersion }: UpdateCommand): Message {
  return { Version: version, PermitMajorVersion: permitMajorVersion }
}

export function parseUpdate(message: Message): UpdateCommand | WireError {
  return MessageFields.parse(message, (fields) => ({
    version: fields.text('Version'),
    permitMajorVersion: fields.flag('PermitMajorVersion'),
  }))
}

export interface StopTunnel {
  readonly id: string
  readonly message: string
  /** `''` when there is none. */
  readonly errorCode: string
}

export function buildStopTunnel({ id, message, errorCode }: StopTunnel): Message {
  return { Id: id, Message: message, ErrorCode: errorCode }
}

export function parseStopTunnel(message: Message): StopTunnel | WireError {
  return MessageFields.parse(message, (fields) => ({
    id: fields.text('Id'),
    message: fields.text('Message'),
    errorCode: fields.text('ErrorCode'),
  }))
}
