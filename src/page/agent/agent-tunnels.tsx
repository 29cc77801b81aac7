/** The tunnels of the agent: their public addresses, services and figures. */
import { useState } from 'preact/hooks'
import { isRecord } from '../api-caller.ts'
import { Fact } from '../exchange-facts.tsx'
import { Freshness, ReadingFault } from '../freshness.tsx'
import { PublicUrl } from '../live-lists.tsx'
import { ConfirmDialog } from '../modal.tsx'
import { PlainText } from '../plain-text.tsx'
import { textIn } from '../text-in.ts'
import { durationText } from '../time-text.ts'
import { useCall } from '../use-call.ts'
import { Value } from '../value.tsx'
import { ViewHead } from '../view-head.tsx'
import { StartTunnel } from './start-tunnel.tsx'
import { useAgentLive } from './use-agent-live.ts'

type Shown = Readonly<Record<string, unknown>>

export function AgentTunnels() {
  const live = useAgentLive<{ readonly tunnels: readonly unknown[] }>('/tunnels')
  const tunnels = (live.value?.tunnels ?? []).filter(isRecord)
  return (
    <>
      <ViewHead title="Tunnels" note={<Freshness reading={live} />} />
      <ReadingFault reading={live} />
      {live.value && tunnels.length === 0 && <p class="card">This agent has no tunnels.</p>}
      {tunnels.map((tunnel) => (
        <Tunnel key={textIn(tunnel.name)} tunnel={tunnel} onDone={live.refresh} />
      ))}
      {live.value && <StartTunnel onDone={live.refresh} />}
    </>
  )
}

function Tunnel({ tunnel, onDone }: { readonly tunnel: Shown; readonly onDone: () => void }) {
  const [isStopping, setStopping] = useState(false)
  const name = textIn(tunnel.name)
  const config = isRecord(tunnel.config) ? tunnel.config : {}
  const { conns, http } = isRecord(tunnel.metrics) ? tunnel.metrics : {}
  return (
    <section class="card">
      <div class="view-head">
        <h2>
          <PlainText text={name} />
        </h2>
        <div class="actions">
          <button type="button" onClick={() => setStopping(true)}>
            Stop {name}
          </button>
        </div>
      </div>
      <dl class="fields">
        <Fact name={tunnel.public_url === '' ? 'labels' : 'address'}>
          {tunnel.public_url === '' ? <Value value={tunnel.labels} /> : <PublicUrl url={tunnel.public_url} />}
        </Fact>
        <Fact name="service">
          <PlainText text={textIn(config.addr)} />
        </Fact>
        <Fact name="connections">{connectionsText(isRecord(conns) ? conns : {})}</Fact>
        <Fact name="requests">
          {config.inspect === true ? requestsText(isRecord(http) ? http : {}) : 'not inspected'}
        </Fact>
      </dl>
      {isStopping && <StopDialog name={name} onClose={() => setStopping(false)} onDone={onDone} />}
    </section>
  )
}

function connectionsText({ count, gauge, p50 }: Shown): string {
  if (!count) return 'none yet'
  return `${number(count)} total, ${number(gauge)} open; median duration ${took(p50)}`
}

function requestsText({ count, rate1, p50, p99 }: Shown): string {
  if (!count) return 'none yet'
  const rate = (Number(rate1) * 60).toLocaleString('en', { maximumFractionDigits: 1 })
  return `${number(count)} total, ${rate}/min now; median ${took(p50)}, p99 ${took(p99)}`
}

function number(value: unknown): string {
  return Number(value).toLocaleString('en')
}

function took(nanoseconds: unknown): string {
  return durationText(Number(nanoseconds) / 1e6)
}

interface StopDialogProps {
  readonly name: string
  readonly onClose: () => void
  readonly onDone: () => void
}

function StopDialog({ name, onClose, onDone }: StopDialogProps) {
  const { call, fault } = useCall()
  const stop = async () => {
    const outcome = await call('DELETE', `/tunnels/${encodeURIComponent(name)}`)
    if (!outcome.ok) return
    onClose()
    onDone()
  }
  return (
    <ConfirmDialog title={`Stop ${name}?`} verb="Stop" fault={fault} onConfirm={() => void stop()} onClose={onClose}>
      Its address is released immediately. A random address may not be available again.
    </ConfirmDialog>
  )
}
