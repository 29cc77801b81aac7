/** The smaller calls of an agent: label tunnels, unbinding, changing a tunnel, and asking for the region. */
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './message-fields.ts'
import { type MessageOf, map, messageForm, optionalFlag, optionalText, text } from './message-form.ts'

const labelForm = messageForm({
  labels: map('Labels'),
  forwardsTo: text('ForwardsTo'),
  forwardsProto: text('ForwardsProto'),
  metadata: text('Metadata'),
})

export type LabelMessage = MessageOf<typeof labelForm>
export const { parse: parseLabelRequest, build: buildLabelRequest } = labelForm

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

/** A change of a tunnel; null leaves a field unchanged. */
export const { parse: parsePatch } = messageForm({
  tunnelId: text('TunnelId'),
  name: optionalText('Name'),
  description: optionalText('Description'),
  metadata: optionalText('Metadata'),
  poolingEnabled: optionalFlag('PoolingEnabled'),
  trafficPolicy: optionalText('TrafficPolicy'),
})

export function buildServerInfo(region: string): Message {
  return { Region: region }
}
