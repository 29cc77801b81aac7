/** Commands to an agent: restart, stop or update itself, end one tunnel, or move to another connection. */
import type { Message } from '../rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './fields.ts'

/** Never empty: some agents wait for a whole object for ever. */
export const restartCommand: Message = {}
export const stopCommand: Message = {}
/** The server is about to close this connection: the agent is to open another, bind there, and leave this one. */
export const moveMessage: Message = {}

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
