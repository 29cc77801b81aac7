/** WebSocket frames and server-sent events of an exchange as they come, newest first. */
import { useState } from 'preact/hooks'
import type { ListedRow } from '../all-rows.ts'
import { isRecord } from '../api-caller.ts'
import { countText } from '../count-text.ts'
import { Content, UnpackedNote } from '../exchange-message.tsx'
import { PlainText } from '../plain-text.tsx'
import { shownBody } from '../shown-body.ts'
import { textIn } from '../text-in.ts'
import { clockTime, sizeText } from '../time-text.ts'
import { useFrames } from './use-events.ts'

/** How many are drawn at first. */
const DRAWN = 100

/** How much of each is shown at first: characters of a text, or bytes. */
const FRAME_CONTENT = 256

/** Renders nothing for an exchange without frames or events. */
export function ExchangeFrames({ exchange }: { readonly exchange: ListedRow }) {
  const isOpen = exchange.is_open === true
  const log = useFrames(textIn(exchange.id), isOpen)
  const [isAll, setAll] = useState(false)
  const kept = Array.isArray(exchange.frames) ? exchange.frames.filter(isRecord) : []
  const frames = isOpen ? log.frames : kept
  const missed = isOpen ? log.missed : Number(exchange.frame_count) - kept.length
  if (frames.length === 0) return null
  const drawn = frames.toReversed().slice(0, isAll ? undefined : DRAWN)
  return (
    <section class="card">
      <h2>{frames[0]?.type === 'event' ? 'Events' : 'Frames'}</h2>
      <p class="soft small" role="status">
        {countText(frames.length + missed, frames[0]?.type === 'event' ? 'events' : 'frames')}
        {missed > 0 && `; only the latest ${frames.length.toLocaleString('en')} are kept`}
        {isOpen && '; new ones appear as they arrive'}
      </p>
      <ol class="frames" reversed>
        {drawn.map((frame) => (
          <li key={textIn(frame.number)}>
            <Frame frame={frame} />
          </li>
        ))}
      </ol>
      {drawn.length < frames.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show {countText(frames.length - drawn.length, 'older')}
        </button>
      )}
    </section>
  )
}

function Frame({ frame }: { readonly frame: ListedRow }) {
  const [size, kept] = [Number(frame.size), Number(frame.kept)]
  const { encoding, content, isWhole, unpacked } = shownBody(frame)
  const isEvent = frame.type === 'event'
  const name = textIn(isEvent ? frame.event : frame.type)
  const id = textIn(frame.event_id)
  return (
    <>
      <div class="frame-head small">
        <time dateTime={textIn(frame.at)}>{clockTime(Date.parse(textIn(frame.at)))}</time>{' '}
        <strong>{frame.from === 'client' ? '→ to the service' : '← from the service'}</strong>{' '}
        <span class="soft">
          <PlainText text={name} most={60} />
          {id !== '' && ', id '}
          {id !== '' && <PlainText text={id} most={60} />}, {sizeText(size)}
          {kept < size && `, only the first ${sizeText(kept)} kept`}
          {frame.is_compressed === true && !unpacked && ', compressed'}
          <UnpackedNote unpacked={unpacked} />
          {frame.is_last === false && ', continues in the next frame'}
        </span>
      </div>
      {content !== '' && (
        <pre>
          <Content encoding={encoding} content={content} isWhole={isWhole} most={FRAME_CONTENT} />
        </pre>
      )}
    </>
  )
}
