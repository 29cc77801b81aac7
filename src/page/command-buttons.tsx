/** Buttons that tell an agent something, and what came of it. */
import { useState } from 'preact/hooks'
import { usePage } from './page-state.ts'

export interface CommandButtonsProps {
  /** The path of the session. */
  readonly path: string
  readonly commands: readonly string[]
  readonly onDone: () => void
}

const done: Readonly<Record<string, string>> = {
  restart: 'The agent restarts.',
  stop: 'The agent stops.',
  update: 'The agent updates itself.',
}

export function CommandButtons({ path, commands, onDone }: CommandButtonsProps) {
  const { api } = usePage()
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const tell = async (command: string) => {
    setBusy(true)
    setSaid(`Waiting for the agent to ${command} …`)
    const outcome = await api.call('POST', `${path}/${command}`)
    setSaid(outcome.ok ? (done[command] ?? 'Done.') : outcome.fault.text)
    setBusy(false)
    onDone()
  }
  return (
    <span class="commands">
      {commands.map((command) => (
        <button key={command} type="button" disabled={isBusy} onClick={() => void tell(command)}>
          {command.charAt(0).toUpperCase() + command.slice(1)}
        </button>
      ))}
      <span role="status" class="small">
        {said}
      </span>
    </span>
  )
}
