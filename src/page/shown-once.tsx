/** A secret that the API shows once, in a dialog that is closed on purpose. */
import { CopyButton } from './copy-button.tsx'
import { Modal } from './modal.tsx'

export interface ShownOnceProps {
  /** What it is: `token`. */
  readonly what: string
  readonly secret: string
  readonly onClose: () => void
}

export function ShownOnce({ what, secret, onClose }: ShownOnceProps) {
  return (
    <Modal title={`Keep this ${what}`} onClose={onClose}>
      <p>It is not shown again: the server keeps only its digest.</p>
      <pre class="secret">{secret}</pre>
      <div class="actions">
        <CopyButton text={secret} what={what} />
        <button type="button" class="primary" onClick={onClose}>
          I have kept it
        </button>
      </div>
    </Modal>
  )
}
