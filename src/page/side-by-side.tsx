/** The responses to a request and to its replay side by side, with differences marked. */
import { Fragment } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { compareAnswers, comparisonText } from './answer-comparison.ts'
import { countText } from './count-text.ts'
import { foldSame, type LinePair } from './line-difference.ts'
import { PlainText } from './plain-text.tsx'
import { durationText } from './time-text.ts'

/** How many lines of the bodies are drawn at first, and how many more on a click. */
const LINES = 200
const MORE_LINES = 2000

interface SideBySideProps {
  readonly first: ListedRow
  readonly replay: ListedRow
}

export function SideBySide({ first, replay }: SideBySideProps) {
  const comparison = useMemo(() => compareAnswers(first, replay), [first, replay])
  const lines = useMemo(() => foldSame(comparison.lines), [comparison])
  const [shown, setShown] = useState(LINES)
  return (
    <section class="card">
      <h2>Side by side</h2>
      <p>{comparisonText(comparison)}</p>
      <table class="compared">
        <thead>
          <tr>
            <td />
            <th scope="col">Original, {durationText(Number(first.duration_ms))}</th>
            <th scope="col">Replay, {durationText(Number(replay.duration_ms))}</th>
          </tr>
        </thead>
        <tbody>
          {comparison.parts.map(({ name, ...pair }, i) => (
            <tr key={i}>
              <th scope="row">
                <PlainText text={name} />
                <DiffersMark pair={pair} />
              </th>
              <Pair pair={pair} />
            </tr>
          ))}
        </tbody>
        {lines.length > 0 && (
          <tbody>
            <tr>
              <th scope="rowgroup" colSpan={3}>
                body
              </th>
            </tr>
            {lines.slice(0, shown).map((line, i) => (
              <tr key={i} class="line">
                {'folded' in line ? (
                  <td colSpan={3} class="soft">
                    {countText(line.folded, 'identical lines')}
                  </td>
                ) : (
                  <>
                    <td>
                      <DiffersMark pair={line} />
                    </td>
                    <Pair pair={line} />
                  </>
                )}
              </tr>
            ))}
          </tbody>
        )}
      </table>
      {lines.length > shown && (
        <button type="button" class="quiet" onClick={() => setShown(shown + MORE_LINES)}>
          … {countText(lines.length - shown, 'more lines')}: show more
        </button>
      )}
    </section>
  )
}

/** In words too: colour alone is not enough for everybody. */
function DiffersMark({ pair: { isSame } }: { readonly pair: Pick<LinePair, 'isSame'> }) {
  return isSame ? null : <strong class="unlike"> differs</strong>
}

function Pair({ pair: { first, second, isSame } }: { readonly pair: LinePair }) {
  return (
    <>
      <td>
        <Side text={first} Mark={isSame ? Fragment : 'del'} />
      </td>
      <td>
        <Side text={second} Mark={isSame ? Fragment : 'ins'} />
      </td>
    </>
  )
}

interface SideProps {
  readonly text: string | undefined
  /** The element around the text. */
  readonly Mark: typeof Fragment | 'del' | 'ins'
}

function Side({ text, Mark }: SideProps) {
  if (text === undefined) return null
  return (
    <Mark>
      <PlainText text={text} />
    </Mark>
  )
}
