#include "manage.h"

#include <string.h>

#include <generated/mem.h>
#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_roles.h>
#include <generated/trebuchet_status_codes.h>
#include <system.h>

#include "board.h"
#include "buffer.h"
#include "command.h"
#include "lease.h"
#include "log.h"
#include "mailbox.h"
#include "node.h"
#include "restart.h"
#include "role.h"
#include "smp.h"
#include "text.h"
#include "update.h"
#include "web.h"

#ifdef TREBUCHET_MAILBOX_BASE

/* External memory from BULK_END of bulk.h on: a job's operand, its result, the image on its way. */
#define WORK_BASE (MAIN_RAM_BASE + 0x80000u)
#define RESULT_BASE (WORK_BASE + 0x1000u)
#define IMAGE_BASE (WORK_BASE + 0x2000u)

#define HEAD_BYTES 12u
#define REPLY_FIRST 4u /* bytes of a reply or a response before the rest */
#define RESULT_ROOM (MAILBOX_RESPONSE_BYTES - HEAD_BYTES)

/* A role that takes longer is reset. */
#define JOB_MS 5000u
/* How late that may be noticed. */
#define POLL_MS 100u

static struct node node;
static uint32_t controls[sizeof(roles) / sizeof(roles[0])];

/* The request that is shown is answered when this is over. */
static enum { IDLE, JOB, RESET, UPDATE, FILES } doing;
static uint32_t job_id, job_since, job_base;
/* Whose message it is: SMP_SESSION is set if it came through the framer. */
static uint32_t session;
/* The image that comes is one of files for the web service. */
static bool has_files;
/* The FPGA is to load the bitstream that is written. */
static bool starts;

/* A line for the log, in pieces. */
struct line {
	char buffer[96];
	struct text text;
};

static void line_start(struct line *line, const char *text)
{
	line->text = text_in(line->buffer, sizeof(line->buffer) - 1);
	text_plain(&line->text, text);
}

static const char *line_end(struct line *line)
{
	line->buffer[line->text.length] = '\0';
	return line->buffer;
}

static void send_head(uint8_t type, uint32_t payload, uint32_t first)
{
	uint32_t head[HEAD_BYTES / 4];

	node_head((uint8_t *)head, type, payload, first);
	mailbox_put(head, sizeof(head));
}

static bool is_framers(void)
{
	return (session & SMP_SESSION) != 0;
}

static void listen(bool on)
{
	mailbox_listen(on);
	smp_listen(on);
}

static void report(uint8_t status)
{
	struct line line;

	if (status == TREBUCHET_STATUS_OK)
		return;
	line_start(&line, "session ");
	text_unsigned(&line.text, session & ~SMP_SESSION);
	text_plain(&line.text, ": ");
	text_plain(&line.text, command_status_name(status));
	log_warn("smp", line_end(&line));
}

/* The role of the last configuration's first core; without one the board's first. */
static const struct role *chosen_role(void)
{
	for (unsigned i = 0; roles[i].base != 0; i++)
		if (node.plan.cores >> i & 1)
			return &roles[i];
	return &roles[0];
}

static void send_response(const struct node_step *step)
{
	report(step->status);
	if (is_framers()) {
		bool moves = step->status == TREBUCHET_STATUS_OK && node.plan.cores != 0;

		smp_respond(step->status, step->close, moves ? chosen_role()->number : SMP_SAME_ROLE);
		return;
	}
	send_head(NODE_RESPONSE, 8, step->status);
	mailbox_put(&step->id, sizeof(step->id));
	mailbox_send(HEAD_BYTES + sizeof(step->id), step->close, 0, 0);
}

static void run_command(const struct node_step *step)
{
	char line[NODE_LINE]; /* the command's output takes the place of the request */
	struct text out = buffer_text();
	uint8_t status;

	memcpy(line, step->data, step->length);
	status = command_run(line, step->length, &out);
	report(status);
	send_head(NODE_REPLY, (uint32_t)(REPLY_FIRST + out.length), status);
	mailbox_put(buffer, out.length);
	mailbox_send(HEAD_BYTES + out.length, false, 0, 0);
}

static void fail_job(uint8_t status, uint32_t id)
{
	struct node_step step = { .action = NODE_RESPOND, .status = status, .id = id };

	send_response(&step);
}

static void start_job(const struct node_step *step)
{
	uint32_t base = chosen_role()->base;
	uint32_t room = node.plan.output_size;

	if (base == 0 || trebuchet_read64(base + ROLE_BUSY) != 0) {
		fail_job(base == 0 ? TREBUCHET_STATUS_NO_ROLE : TREBUCHET_STATUS_BUSY, step->id);
		return;
	}
	trebuchet_write32(base + ROLE_OPERAND_ADDR, (uint32_t)(uintptr_t)step->data);
	trebuchet_write32(base + ROLE_OPERAND_LENGTH, (uint32_t)step->length);
	trebuchet_write32(base + ROLE_RESULT_ADDR, RESULT_BASE);
	trebuchet_write32(base + ROLE_RESULT_ROOM,
			  room != 0 && room < RESULT_ROOM ? room : RESULT_ROOM);
	trebuchet_write64(base + ROLE_INTERRUPT_ENABLE, 1);
	trebuchet_write64(base + ROLE_START, 1);
	listen(false);
	job_base = base;
	job_id = step->id;
	job_since = board_uptime_ms();
	doing = JOB;
}

static void end_job(void)
{
	uint8_t status = (uint8_t)trebuchet_read32(job_base + ROLE_RESULT_STATUS);
	uint32_t length = trebuchet_read32(job_base + ROLE_RESULT_LENGTH);

	trebuchet_write64(job_base + ROLE_INTERRUPT_STATUS, 3);
	if (status != TREBUCHET_STATUS_OK) {
		fail_job(status, job_id);
		return;
	}
	flush_cpu_dcache();
	send_head(NODE_DATA, (uint32_t)sizeof(job_id) + length, job_id);
	mailbox_put((const uint32_t *)RESULT_BASE, length);
	mailbox_send(HEAD_BYTES + length, false, 0, 0);
}

static void report_configuration(void)
{
	struct line line;

	line_start(&line, "configured:");
	for (unsigned i = 0; roles[i].base != 0; i++) {
		if (node.plan.cores >> i & 1) {
			role_enable(&roles[i], true);
			text_char(&line.text, ' ');
			text_plain(&line.text, roles[i].name);
		}
	}
	text_plain(&line.text, ", operands ");
	text_unsigned(&line.text, node.plan.input_size);
	text_plain(&line.text, ", results ");
	text_unsigned(&line.text, node.plan.output_size);
	text_plain(&line.text, ", image ");
	text_unsigned(&line.text, node.plan.benchmark ? 0 : node.plan.image_length);
	log_info("smp", line_end(&line));
}

static void end_configuration(uint8_t status)
{
	struct node_step step = { 0 };
	struct node_plan plan = node.plan;

	node_configured(&node, status, &step);
	if (doing == FILES) /* which configure no role */
		node.plan = plan;
	else if (status == TREBUCHET_STATUS_OK)
		report_configuration();
	send_response(&step);
}

/* The bytes behind a benchmarking configuration's head: the delay of its role, in microseconds. */
static uint8_t set_benchmark(void)
{
	uint32_t delay;

	memcpy(&delay, (const void *)IMAGE_BASE, sizeof(delay));
	return role_benchmark(delay, node.next.output_size, &node.next.cores);
}

/* An image that came through the framer is asked for by what runs it: it runs when it is answered. */
static uint8_t take_image(void)
{
	const void *data = (const void *)IMAGE_BASE;
	uint8_t status;

	if (has_files) {
		status = web_finish(node.next.image_length);
		starts = false;
		doing = status == TREBUCHET_STATUS_OK ? FILES : IDLE;
		listen(doing == IDLE);
		return status;
	}
	starts = is_framers() && update_starts(data, node.next.image_length);
	if (starts && update_is_running(data))
		return TREBUCHET_STATUS_OK;
	status = update_start(data, node.next.image_length);
	if (status == TREBUCHET_STATUS_OK) {
		log_info("smp", "writing an image to flash");
		listen(false);
		doing = UPDATE;
	}
	return status;
}

static void configure(void)
{
	uint8_t status = TREBUCHET_STATUS_OK;

	if (node.next.benchmark)
		status = set_benchmark();
	else if (node.next.image_length > 0)
		status = take_image();
	if (doing != UPDATE && doing != FILES)
		end_configuration(status);
}

static void store(const struct node_step *step)
{
	if (step->store_at == 0)
		has_files = web_begins(step->store, step->store_length);
	if (has_files)
		web_take(step->store_at, step->store, step->store_length);
	else
		memcpy((uint8_t *)IMAGE_BASE + step->store_at, step->store, step->store_length);
}

static void act(const struct node_piece *piece)
{
	struct node_step step;

	session = piece->session;
	node_take(&node, piece, &step);
	if (step.note != NULL)
		log_warn("smp", step.note);
	if (step.store_length > 0)
		store(&step);
	switch (step.action) {
	case NODE_AWAIT:
		if (is_framers())
			smp_await(step.expect);
		else
			mailbox_send(0, false, step.expect, step.tag);
		break;
	case NODE_RESPOND:
		send_response(&step);
		break;
	case NODE_RUN:
		run_command(&step);
		break;
	case NODE_WORK:
		start_job(&step);
		break;
	case NODE_CONFIGURE:
		configure();
		break;
	}
}

void manage_take_header(const uint8_t *header, size_t length, uint8_t missing)
{
	struct node_piece piece = {
		.session = mailbox_session(), .tag = NODE_TAG_HEADER, .missing = missing,
		.data = header, .length = length, .now = board_uptime_ms(), .lease = lease_epoch(),
		.stale = length == NODE_HEADER && lease_refuses(node_epoch(header)),
	};

	act(&piece);
}

void manage_take_piece(uint32_t tag, uint8_t missing)
{
	/* The role reads operands where the CPU has put them. */
	uint32_t *to = tag == NODE_TAG_DATA ? (uint32_t *)WORK_BASE : buffer;
	struct node_piece piece = {
		.session = mailbox_session(), .tag = (enum node_tag)tag, .missing = missing,
		.data = (const uint8_t *)to, .length = mailbox_read(to), .now = board_uptime_ms(),
		.lease = lease_epoch(), .stale = lease_refuses(0),
	};

	act(&piece);
}

void manage_start(void)
{
	struct node_limits limits = {
		.cores = controls, .piece = TREBUCHET_MAILBOX_REQUEST,
		.image = TREBUCHET_MEMORY_BASE - IMAGE_BASE,
	};

	for (; roles[limits.count].base != 0; limits.count++)
		controls[limits.count] = roles[limits.count].base;
	node_start(&node, &limits);
	smp_listen(true);
	board_wake_every(POLL_MS);
}

/* True when the job has been answered. */
static bool serve_job(void)
{
	if (trebuchet_read64(job_base + ROLE_BUSY) == 0) {
		end_job();
		return true;
	}
	if (doing == JOB && board_uptime_ms() - job_since > JOB_MS) {
		log_error("smp", "a role does not answer; it is reset");
		trebuchet_write32(job_base + ROLE_RESET, 1);
		doing = RESET;
	}
	return false;
}

/* True when the image is in flash, or served, or is not for good. */
static bool serve_update(void)
{
	uint8_t status;

	if (doing == FILES) {
		if (!web_step()) {
			board_wake();
			return false;
		}
		end_configuration(TREBUCHET_STATUS_OK);
		return true;
	}
	if (!update_step(&status)) {
		board_wake(); /* there is no interrupt to wait for */
		return false;
	}
	end_configuration(status);
	if (status == TREBUCHET_STATUS_OK && starts)
		restart_request();
	return true;
}

void manage_take_part(const struct node_piece *piece)
{
	act(piece);
}

bool manage_is_idle(void)
{
	return doing == IDLE;
}

bool manage_serve(void)
{
	if (doing == IDLE)
		return true;
	if (!(doing == UPDATE || doing == FILES ? serve_update() : serve_job()))
		return false;
	doing = IDLE;
	listen(true);
	return true;
}

#endif
