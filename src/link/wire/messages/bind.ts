/** Binds: an agent asks for a public address, and the server answers with the one it got. */
import { Secret } from '../../../lib/secrets/secret.ts'
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './message-fields.ts'

export interface BindMessage {
  /** `''` for a new tunnel; when an agent binds again, the former id, which the server must keep. */
  readonly id: string
  readonly proto: string
  /** Where traffic goes, for people. */
  readonly forwardsTo: string
  /** The protocol over the stream: `''`, `http1` or `http2`. */
  readonly forwardsProto: string
  /** As sent, since the answer repeats it in the agent's spelling; see `bind-options.ts`. */
  readonly opts: Readonly<Record<string, unknown>>
  /** The token of the last answer, to claim the same address. */
  readonly token: Secret
  readonly metadata: string
  readonly bindings: readonly string[]
  /** Whether others may share the address, if they ask for it too: `Extra.PoolingEnabled` of all official SDKs. */
  readonly poolingEnabled: boolean
  readonly name: string
  readonly description: string
}

export function parseBind(message: Message): BindMessage | WireError {
  return MessageFields.parse(message, (fields) => {
    const extra = fields.object('Extra')
    return {
      id: fields.text('Id'),
      proto: fields.text('Proto'),
      forwardsTo: fields.text('ForwardsTo'),
      forwardsProto: fields.text('ForwardsProto'),
      opts: fields.record('Opts'),
      token: new Secret(extra.text('Token')),
      metadata: extra.text('Metadata'),
      bindings: extra.texts('Bindings'),
      poolingEnabled: extra.flag('PoolingEnabled'),
      name: extra.text('Name'),
      description: extra.text('Description'),
    }
  })
}

export function buildBind(request: BindMessage): Message {
  return {
    Id: request.id,
    Proto: request.proto,
    ForwardsTo: request.forwardsTo,
    ForwardsProto: request.forwardsProto,
    Opts: request.opts,
    Extra: {
      Token: request.token.reveal(),
      IPPolicyRef: '',
      Metadata: request.metadata,
      Bindings: request.bindings,
      PoolingEnabled: request.poolingEnabled,
      Name: request.name,
      Description: request.description,
    },
  }
}

export interface BindAnswer extends Pick<BindMessage, 'id' | 'proto' | 'token'> {
  readonly url: string
  /** The result of `echoOptions`; agents in Rust refuse an answer without it. */
  readonly opts: BindMessage['opts']
  /** The id that the API shows for the tunnel. */
  readonly tunnelId: string
}

export function buildBindAnswer(answer: BindAnswer): Message {
  return {
    Id: answer.id,
    URL: answer.url,
    Proto: answer.proto,
    Opts: answer.opts,
    Error: '',
    Extra: { Token: answer.token.reveal(), TunnelID: answer.tunnelId },
  }
}

/** `error` is `''` when the address was given. */
export function parseBindAnswer(message: Message): { error: string; answer: BindAnswer } | WireError {
  return MessageFields.parse(message, (fields) => {
    const extra = fields.object('Extra')
    const answer = {
      id: fields.text('Id'),
      url: fields.text('URL'),
      proto: fields.text('Proto'),
      opts: fields.record('Opts'),
      token: new Secret(extra.text('Token')),
      tunnelId: extra.text('TunnelID'),
    }
    return { error: fields.text('Error'), answer }
  })
}
