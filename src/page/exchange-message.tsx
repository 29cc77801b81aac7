/** The head and body of a request or an answer, as far as they were kept. */
import { isRecord } from './api-caller.ts'
import { PlainText } from './plain-text.tsx'
import { textIn } from './text-in.ts'
import { sizeText } from './time-text.ts'

/** Larger bodies are not laid out, in characters. */
const MAX_LAID_OUT = 500_000

export interface ExchangeMessageProps {
  readonly title: string
  /** As the API shows it; null when it was not kept. */
  readonly message: unknown
}

export function ExchangeMessage({ title, message }: ExchangeMessageProps) {
  if (!isRecord(message)) {
    return (
      <section>
        <h3>{title}</h3>
        <p class="soft">Not kept: no capture was running.</p>
      </section>
    )
  }
  const headers = Array.isArray(message.headers) ? message.headers.filter(isRecord) : []
  return (
    <section>
      <h3>{title}</h3>
      <dl class="headers">
        {headers.map(({ name, value }, i) => (
          <div key={`${i} ${textIn(name)}`}>
            <dt>
              <PlainText text={textIn(name)} />
            </dt>
            <dd>
              <PlainText text={textIn(value)} most={1000} />
            </dd>
          </div>
        ))}
      </dl>
      <Body body={message.body} />
    </section>
  )
}

function Body({ body }: { readonly body: unknown }) {
  if (!isRecord(body)) return <p class="soft">The body was not kept.</p>
  const [size, kept] = [Number(body.size), Number(body.kept)]
  if (size === 0) return <p class="soft">No body.</p>
  const content = textIn(body.content)
  return (
    <>
      <p class="soft small">
        {sizeText(size)}
        {kept < size && `, of which the first ${sizeText(kept)} were kept`}
        {body.encoding === 'base64' && ', not text: shown as base64'}
      </p>
      <pre>
        <PlainText text={kept === size ? laidOut(content) : content} most={5000} />
      </pre>
    </>
  )
}

/** JSON with a line for each field; anything else as it is. */
export function laidOut(content: string): string {
  if (content.length > MAX_LAID_OUT || !/^\s*[{[]/.test(content)) return content
  try {
    return JSON.stringify(JSON.parse(content), null, 2)
  } catch {
    return content
  }
}
