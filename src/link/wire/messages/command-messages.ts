/** Messages to an agent: to restart, stop or update itself, to end one tunnel, to move, and a list of nodes. */
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './message-fields.ts'
import { flag, type MessageOf, messageForm, text } from './message-form.ts'

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

const updateForm = messageForm({
  /** `''` means the newest. */
  version: text('Version'),
  permitMajorVersion: flag('PermitMajorVersion'),
})

export type UpdateCommand = MessageOf<typeof updateForm>
export const { parse: parseUpdate, build: buildUpdate } = updateForm

const stopTunnelForm = messageForm({
  id: text('Id'),
  message: text('Message'),
  /** `''` when there is none. */
  errorCode: text('ErrorCode'),
})

export type StopTunnel = MessageOf<typeof stopTunnelForm>
export const { parse: parseStopTunnel, build: buildStopTunnel } = stopTunnelForm
