/** Plots of traffic over the last 15 minutes or 24 hours, of all nodes together. */
import { useMemo, useState } from 'preact/hooks'
import { Freshness, ReadingFault } from './freshness.tsx'
import { usePage } from './page-state.ts'
import { Plot, type PlotProps } from './plot.tsx'
import { durationText, sizeText } from './time-text.ts'
import { CALM_MS, useLive } from './use-live.ts'

/** A point of `GET /traffic/…`. */
interface TrafficShown {
  readonly at: string
  readonly seconds: number
  readonly requests: number
  readonly errors: number
  readonly refused: number
  readonly connections: number
  readonly bytes_in: number
  readonly bytes_out: number
  readonly p50_ms: number | null
  readonly p99_ms: number | null
  readonly open: number
  readonly sessions: number
  readonly tunnels: number
}

interface TrafficAnswer {
  readonly interval: number
  readonly nodes: readonly string[]
  readonly missing: readonly string[]
  readonly points: readonly TrafficShown[]
}

type Timed = Omit<TrafficShown, 'at'> & { readonly at: number }

/** How often each is read, and how far it goes back, in milliseconds. */
const spans = {
  minutes: { name: 'Last 15 minutes', everyMs: 5000, lastsMs: 900_000 },
  day: { name: 'Last 24 hours', everyMs: CALM_MS, lastsMs: 86_400_000 },
} as const

type Span = keyof typeof spans

const perSecond =
  (read: (point: Timed) => number) =>
  (point: Timed): number | null =>
    point.seconds > 0 ? read(point) / point.seconds : null

const count = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 })

const plots: readonly Pick<PlotProps<Timed>, 'title' | 'text' | 'lines'>[] = [
  {
    title: 'Requests per second',
    text: count,
    lines: [
      { name: 'requests', read: perSecond(({ requests }) => requests) },
      { name: 'errors', read: perSecond(({ errors }) => errors) },
      { name: 'refused', read: perSecond(({ refused }) => refused) },
    ],
  },
  {
    title: 'Latency',
    text: durationText,
    lines: [
      { name: 'p50', read: ({ p50_ms }) => p50_ms },
      { name: 'p99', read: ({ p99_ms }) => p99_ms },
    ],
  },
  {
    title: 'Bytes per second',
    text: sizeText,
    lines: [
      { name: 'to visitors', read: perSecond(({ bytes_out }) => bytes_out) },
      { name: 'from visitors', read: perSecond(({ bytes_in }) => bytes_in) },
    ],
  },
  {
    title: 'Connections',
    text: count,
    lines: [
      { name: 'open', read: ({ open }) => open },
      { name: 'new per second', read: perSecond(({ connections }) => connections) },
    ],
  },
  {
    title: 'Online',
    text: count,
    lines: [
      { name: 'tunnels', read: ({ tunnels }) => tunnels },
      { name: 'sessions', read: ({ sessions }) => sessions },
    ],
  },
]

/** Only admins may read these figures. */
export function TrafficPlots() {
  const { api } = usePage()
  const [span, setSpan] = useState<Span>('minutes')
  const { everyMs, lastsMs } = spans[span]
  const reading = useLive(`/traffic/${span}`, () => api.get<TrafficAnswer>(`/traffic/${span}`), everyMs)
  const { value, readAt } = reading
  const points = useMemo(() => value?.points.map((point) => ({ ...point, at: Date.parse(point.at) })) ?? [], [value])
  const names = Object.keys(spans) as Span[] // its own keys
  return (
    <section>
      <div class="plots-head">
        <h2>Traffic</h2>
        <Freshness reading={reading} />
        <fieldset class="choice" aria-label="Time">
          {names.map((name) => (
            <button key={name} type="button" aria-pressed={name === span} onClick={() => setSpan(name)}>
              {spans[name].name}
            </button>
          ))}
        </fieldset>
      </div>
      <ReadingFault reading={reading} />
      {value && value.missing.length > 0 && (
        <p class="notice is-bad">Without {value.missing.join(', ')}: no response.</p>
      )}
      {value && (
        <div class="plots">
          {plots.map((plot) => (
            <Plot
              key={plot.title}
              {...plot}
              points={points}
              from={readAt - lastsMs}
              to={readAt}
              stepMs={value.interval * 1000}
            />
          ))}
        </div>
      )}
    </section>
  )
}
