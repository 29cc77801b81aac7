/** The head and body of a request or response, as far as they were kept. */
import { useState } from 'preact/hooks'
import { isRecord } from './api-caller.ts'
import { hexLines } from './hex-lines.ts'
import { laidOut } from './laid-out.ts'
import { PlainText } from './plain-text.tsx'
import { shownBody, type UnpackedFrom } from './shown-body.ts'
import { textIn } from './text-in.ts'
import { sizeText } from './time-text.ts'
import { visibleText } from './visible-text.ts'

/** The texts for a message or body that is not there. */
export interface AbsenceWords {
  readonly message: string
  readonly body: string
}

export const notCaptured: AbsenceWords = {
  message: 'Not captured: no capture was running.',
  body: 'The body was not captured.',
}

interface ExchangeMessageProps {
  readonly title: string
  /** As the API shows it; null when it is not there. */
  readonly message: unknown
  readonly absent?: AbsenceWords | undefined
}

export function ExchangeMessage({ title, message, absent = notCaptured }: ExchangeMessageProps) {
  if (!isRecord(message)) {
    return (
      <section>
        <h3>{title}</h3>
        <p class="soft">{absent.message}</p>
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
      {isRecord(message.body) ? <Body body={message.body} /> : <p class="soft">{absent.body}</p>}
    </section>
  )
}

function Body({ body }: { readonly body: Readonly<Record<string, unknown>> }) {
  const [size, kept] = [Number(body.size), Number(body.kept)]
  const { encoding, content, isWhole, unpacked } = shownBody(body)
  if (size === 0) return <p class="soft">No body.</p>
  return (
    <>
      <p class="soft small">
        {sizeText(size)}
        {kept < size && `, only the first ${sizeText(kept)} kept`}
        {encoding === 'base64' && ', binary'}
        <UnpackedNote unpacked={unpacked} />
      </p>
      <pre>
        <Content encoding={encoding} content={content} isWhole={isWhole} />
      </pre>
    </>
  )
}

/** The coding and the size of a body that was decompressed. */
export function UnpackedNote({ unpacked }: { readonly unpacked: UnpackedFrom | undefined }) {
  if (!unpacked) return null
  return (
    <>
      {`, ${visibleText(unpacked.coding)}, decompressed to ${sizeText(unpacked.size)}`}
      {unpacked.isCut && ' (truncated)'}
    </>
  )
}

interface ContentProps {
  /** `text` or `base64`. */
  readonly encoding: unknown
  readonly content: string
  readonly isWhole: boolean
  /** How many characters or bytes are shown at first. */
  readonly most?: number
}

/** Text, JSON with a line for each field, or bytes. */
export function Content({ encoding, content, isWhole, most = 5000 }: ContentProps) {
  if (encoding === 'base64') return <HexBytes base64={content} most={Math.ceil(most / 16) * 16} />
  return <PlainText text={isWhole ? laidOut(content) : content} most={most} />
}

/** How many more bytes a click shows. */
const MORE_BYTES = 16 * 1024

function HexBytes({ base64, most }: { readonly base64: string; readonly most: number }) {
  const [shown, setShown] = useState(most)
  const { lines, left } = hexLines(base64, shown)
  return (
    <>
      <span class="hex">{lines.join('\n')}</span>
      {left > 0 && (
        <button type="button" class="quiet" onClick={() => setShown(shown + MORE_BYTES)}>
          … {left.toLocaleString('en')} more bytes: show more
        </button>
      )}
    </>
  )
}
