/** A dialog in front of the page, which holds the focus until it is closed. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { CallFault } from './api-caller.ts'
import { FaultNotice } from './fault-notice.tsx'

interface ModalProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Modal({ title, onClose, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => current?.close()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

interface ConfirmDialogProps extends ModalProps {
  /** The label of the button that goes ahead. */
  readonly verb: string
  /** Why it failed. */
  readonly fault?: CallFault | undefined
  readonly onConfirm: () => void
}

/** A dialog that asks before something that cannot be undone. */
export function ConfirmDialog({ title, children, verb, fault, onConfirm, onClose }: ConfirmDialogProps) {
  return (
    <Modal title={title} onClose={onClose}>
      <p>{children}</p>
      <FaultNotice fault={fault} />
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={onConfirm}>
          {verb}
        </button>
      </div>
    </Modal>
  )
}
