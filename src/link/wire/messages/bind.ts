/** Binds: an agent asks for a public address, and the server answers with the one it got. */
import { flag, type MessageOf, messageForm, record, secret, text, texts } from './message-form.ts'

const bindForm = messageForm(
  {
    /** `''` when the server chooses; when an agent binds again, the former id, which the server must keep. */
    id: text('Id'),
    proto: text('Proto'),
    /** Where traffic goes, for people. */
    forwardsTo: text('ForwardsTo'),
    /** The protocol over the stream: `''`, `http1` or `http2`. */
    forwardsProto: text('ForwardsProto'),
    /** As sent, since the answer repeats it in the agent's spelling; see `bind-options.ts`. */
    opts: record('Opts'),
  },
  {
    /** The token of the last answer, to claim the same address. */
    token: secret('Token'),
    IPPolicyRef: '',
    metadata: text('Metadata'),
    bindings: texts('Bindings'),
    /** Whether others may share the address, if they ask for it too: `Extra.PoolingEnabled` of all official SDKs. */
    poolingEnabled: flag('PoolingEnabled'),
    name: text('Name'),
    description: text('Description'),
  },
)

export type BindMessage = MessageOf<typeof bindForm>
export const { parse: parseBind, build: buildBind } = bindForm

const bindAnswerForm = messageForm(
  {
    id: text('Id'),
    url: text('URL'),
    proto: text('Proto'),
    /** The result of `echoOptions`; agents in Rust refuse an answer without it. */
    opts: record('Opts'),
    Error: '',
  },
  {
    token: secret('Token'),
    /** The id that the API shows for the tunnel. */
    tunnelId: text('TunnelID'),
  },
)

export type BindAnswer = MessageOf<typeof bindAnswerForm>
export const { parseAnswer: parseBindAnswer, build: buildBindAnswer } = bindAnswerForm
