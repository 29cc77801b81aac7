/** A dialog for a secret that the API shows only once. */
import { CopyButton } from './copy-button.tsx'
import { Modal } from './modal.tsx'

interface ShownOnceProps {
  /** What it is: `token`. */
  readonly what: string
  readonly secret: string
  readonly onClose: () => void
}

export function ShownOnce({ what, secret, onClose }: ShownOnceProps) {
  return (
    <Modal title={`Save this ${what}`} onClose={onClose}>
      <p>It will not be shown again. The server keeps only a hash of it.</p>
      <pre class="secret">{secret}</pre>
      <div class="actions">
        <CopyButton text={secret} what={what} />
        <button type="button" class="primary" onClick={onClose}>
          I have saved it
        </button>
      </div>
    </Modal>
  )
}
