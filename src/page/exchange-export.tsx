/** Exports an exchange as a curl command or a HAR file. */
import { useState } from 'preact/hooks'
import type { ApiOutline } from './api-outline.ts'
import { CopyButton } from './copy-button.tsx'
import { Modal } from './modal.tsx'
import { useCall } from './use-call.ts'

interface ExchangeExportProps {
  readonly id: string
  readonly outline: Pick<ApiOutline, 'paths'>
}

export function ExchangeExport({ id, outline: { paths } }: ExchangeExportProps) {
  const { call, fault } = useCall()
  const [command, setCommand] = useState('')
  const readCommand = async () => {
    const outcome = await call<{ readonly command: string }>('GET', `/exchanges/${id}/curl`)
    if (outcome.ok) setCommand(outcome.value.command)
  }
  const save = async () => {
    const outcome = await call('GET', `/exchanges/${id}/har`)
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
