/** The smaller calls of an agent: label tunnels, unbinding, changing a tunnel, and asking for the region. */
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import type { BindMessage } from './bind.ts'
import { MessageFields } from './message-fields.ts'

export interface LabelMessage extends Pick<BindMessage, 'forwardsTo' | 'forwardsProto' | 'metadata'> {
  readonly labels: Readonly<Record<string, string>>
}

export function parseLabelRequest(message: Message): LabelMessage | WireError {
  return MessageFields.parse(message, (fields) => ({
    labels: fields.map('Labels'),
    forwardsTo: fields.text('ForwardsTo'),
    forwardsProto: fields.text('ForwardsProto'),
    metadata: fields.text('Metadata'),
  }))
}

export function buildLabelRequest(request: LabelMessage): Message {
  return {
    Labels: request.labels,
    ForwardsTo: request.forwardsTo,
    ForwardsProto: request.forwardsProto,
    Metadata: request.metadata,
  }
}

export function buildLabelAnswer(id: string): Message {
  return { Id: id, Error: '' }
}

export function parseLabelAnswer(message: Message): { error: string; id: string } | WireError {
  return MessageFields.parse(message, (fields) => ({ error: fields.text('Error'), id: fields.text('Id') }))
}

export function buildUnbind(id: string): Message {
  return { Id: id }
}

/** The id of the tunnel to end; some agents send it up to three times. */
export function parseUnbind(message: Message): { id: string } | WireError {
  return MessageFields.parse(message, (fields) => ({ id: fields.text('Id') }))
}

export const unbindAnswer: Message = { Error: '', Extra: null }

/** Null leaves a field unchanged. */
interface PatchRequest {
  readonly tunnelId: string
  readonly name: string | null
  readonly description: string | null
  readonly metadata: string | null
  readonly poolingEnabled: boolean | null
  readonly trafficPolicy: string | null
}

export function parsePatch(message: Message): PatchRequest | WireError {
  return MessageFields.parse(message, (fields) => ({
    tunnelId: fields.text('TunnelId'),
    name: fields.optionalText('Name'),
    description: fields.optionalText('Description'),
    metadata: fields.optionalText('Metadata'),
    poolingEnabled: fields.optionalFlag('PoolingEnabled'),
    trafficPolicy: fields.optionalText('TrafficPolicy'),
  }))
}

export function buildServerInfo(region: string): Message {
  return { Region: region }
}
