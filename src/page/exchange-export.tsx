/** Exports an exchange as a curl command or a HAR file. */
import { useState } from 'preact/hooks'
import type { CallFault } from './api-caller.ts'
import type { ApiOutline } from './api-outline.ts'
import { CopyButton } from './copy-button.tsx'
import { Modal } from './modal.tsx'
import { usePage } from './page-state.ts'

interface ExchangeExportProps {
  readonly id: string
  readonly outline: Pick<ApiOutline, 'paths'>
}

export function ExchangeExport({ id, outline: { paths } }: ExchangeExportProps) {
  const { api } = usePage()
  const [command, setCommand] = useState('')
  const [fault, setFault] = useState<CallFault>()
  const readCommand = async () => {
    const outcome = await api.get<{ readonly command: string }>(`/exchanges/${id}/curl`)
    setFault(outcome.ok ? undefined : outcome.fault)
    if (outcome.ok) setCommand(outcome.value.command)
  }
  const save = async () => {
    const outcome = await api.get(`/exchanges/${id}/har`)
    setFault(outcome.ok ? undefined : outcome.fault)
    if (outcome.ok) saveFile(`${id}.har`, JSON.stringify(outcome.value, null, 2))
  }
  return (
    <>
      {paths.has('/exchanges/{id}/curl') && (
        <button type="button" onClick={() => void readCommand()}>
          Show as curl
        </button>
      )}
      {paths.has('/exchanges/{id}/har') && (
        <button type="button" onClick={() => void save()}>
          Save as HAR
        </button>
      )}
      <span role="status" class="small">
        {fault?.text}
      </span>
      {command !== '' && (
        <Modal title="curl command" onClose={() => setCommand('')}>
          <pre class="command">{command}</pre>
          <div class="actions">
            <CopyButton text={command} what="command" />
            <button type="button" onClick={() => setCommand('')}>
              Close
            </button>
          </div>
        </Modal>
      )}
    </>
  )
}

function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
