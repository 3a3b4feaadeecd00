#include "smp.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>
#include <system.h>

#include "board.h"
#include "buffer.h"
#include "lease.h"
#include "manage.h"
#include "node.h"

#ifdef TREBUCHET_SMP_BOARD_BASE

#define JOB(name) (1u << TREBUCHET_SMP_BOARD_JOB_##name##_OFFSET)
#define ANSWER_GO (1u << TREBUCHET_SMP_BOARD_ANSWER_GO_OFFSET)
#define ROLE_GIVEN (1u << TREBUCHET_SMP_BOARD_ROLE_GIVEN_OFFSET)

void smp_listen(bool on)
{
	trebuchet_smp_board_irq_enable_write(on);
}

void smp_await(uint32_t bytes)
{
	trebuchet_smp_board_next_write(bytes);
	trebuchet_smp_board_role_write(0);
	trebuchet_smp_board_answer_write(ANSWER_GO | TREBUCHET_STATUS_OK);
}

void smp_respond(uint8_t status, bool close, int role)
{
	trebuchet_smp_board_next_write(close);
	trebuchet_smp_board_role_write(role >= 0 ? ROLE_GIVEN | (uint32_t)role : 0);
	trebuchet_smp_board_answer_write(ANSWER_GO | status);
}

/* Out of a session's ring, whose size its address is a multiple of. */
static void copy(uint32_t address, uint8_t *to, uint32_t length)
{
	uint32_t start = address & ~(TREBUCHET_SMP_RING - 1);
	uint32_t left = start + TREBUCHET_SMP_RING - address;

	flush_cpu_dcache();
	if (left > length)
		left = length;
	memcpy(to, (const uint8_t *)(uintptr_t)address, left);
	memcpy(to + left, (const uint8_t *)(uintptr_t)start, length - left);
}

void smp_serve(void)
{
	uint32_t job = trebuchet_smp_board_job_read();
	struct node_piece piece = {
		.data = (const uint8_t *)buffer, .now = board_uptime_ms(), .lease = lease_epoch(),
	};

	if ((job & JOB(PENDING)) == 0 || !manage_is_idle())
		return;
	piece.session = SMP_SESSION | trebuchet_smp_board_session_read();
	piece.tag = (job & JOB(HEADER)) != 0 ? NODE_TAG_HEADER : NODE_TAG_CONFIGURATION;
	piece.length = job >> TREBUCHET_SMP_BOARD_JOB_LENGTH_OFFSET;
	if (piece.length > TREBUCHET_MAILBOX_REQUEST) /* none was asked for */
		piece.length = TREBUCHET_MAILBOX_REQUEST;
	copy(trebuchet_smp_board_address_read(), (uint8_t *)buffer, piece.length);
	/* The framer has judged it, perhaps by the lease before. */
	if (piece.tag == NODE_TAG_HEADER && piece.length == NODE_HEADER)
		piece.stale = lease_refuses(node_epoch((const uint8_t *)buffer));
	if (piece.length == 0)
		piece.missing = (job & JOB(GONE)) != 0 ? TREBUCHET_STATUS_ABORTED :
				(job & JOB(LATE)) != 0 ? TREBUCHET_STATUS_TIMED_OUT :
				TREBUCHET_STATUS_TRUNCATED;
	manage_take_part(&piece);
	board_wake(); /* one a turn, as of the mailbox */
}

#else /* no TCP port with SMP */

void smp_serve(void)
{
}

void smp_listen(bool on)
{
	(void)on;
}

void smp_await(uint32_t bytes)
{
	(void)bytes;
}

void smp_respond(uint8_t status, bool close, int role)
{
	(void)status;
	(void)close;
	(void)role;
}

#endif
