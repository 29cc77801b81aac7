/** Buttons that send a command to an agent, or ask the server for something, and the outcome. */
import { useState } from 'preact/hooks'
import { ConfirmDialog } from './modal.tsx'
import { usePage } from './page-state.ts'

interface CommandButtonsProps {
  /** The path of the session or other resource. */
  readonly path: string
  readonly commands: readonly string[]
  readonly onDone: () => void
  /** Called with the outcome; if omitted, the outcome is shown beside the buttons. */
  readonly onSaid?: (said: string) => void
}

const done: Readonly<Record<string, string>> = {
  restart: 'The agent is restarting and will come back as a new session.',
  stop: 'The agent is stopping.',
  update: 'The agent is updating.',
  renew: 'The certificate will be replaced within seconds.',
  retry: 'Another try begins within seconds.',
}

/** What the server does by itself, without an agent, and what the button says. */
const byServer: Readonly<Record<string, string>> = { renew: 'Renew', retry: 'Try now' }

export function CommandButtons({ path, commands, onDone, onSaid }: CommandButtonsProps) {
  const { api } = usePage()
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [isStopping, setStopping] = useState(false)
  const say = onSaid ?? setSaid
  const tell = async (command: string) => {
    setStopping(false)
    setBusy(true)
    say(byServer[command] ? '' : `Waiting for the agent to ${command} …`)
    const outcome = await api.call('POST', `${path}/${command}`)
    say(outcome.ok ? (done[command] ?? 'Done.') : outcome.fault.text)
    setBusy(false)
    onDone()
  }
  return (
    <span class="commands">
      {commands.map((command) => (
        <button
          key={command}
          type="button"
          disabled={isBusy}
          onClick={() => (command === 'stop' ? setStopping(true) : void tell(command))}
        >
          {byServer[command] ?? command.charAt(0).toUpperCase() + command.slice(1)}
        </button>
      ))}
      {!onSaid && (
        <span role="status" class="small">
          {said}
        </span>
      )}
      {isStopping && (
        <ConfirmDialog
          title="Stop this agent?"
          verb="Stop the agent"
          onConfirm={() => void tell('stop')}
          onClose={() => setStopping(false)}
        >
          Its tunnels go offline immediately. It can only be started again on its own machine.
        </ConfirmDialog>
      )}
    </span>
  )
}
