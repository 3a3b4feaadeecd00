*** Settings ***
Documentation     The management service, by the host's own commands: a connection to the mailbox's
...               model is one to the board's port 80. Skipped for a board without flash.
Resource          trebuchet.resource
Library           OperatingSystem
Test Setup        Managed Board
Test Teardown     Test Teardown

*** Keywords ***
Managed Board
    ${script}=    Get Variable Value    ${SCRIPT_MANAGED}    ${EMPTY}
    Skip If    not $script    this board has no flash
    Remove File    ${FLASH}
    Board    ${script}
    Boot
    ${port}=    Execute Command    sysbus.mailbox Port
    ${port}=    Convert To Integer    ${port.strip()}
    Set Test Variable    ${NODE}    127.0.0.1:${port}
    Set Test Variable    ${NODE_PORT}    ${port}

Trebuchet
    [Arguments]    @{words}    ${rc}=0
    ${done}=    Run Process    ${PYTHON}    -m    trebuchet.host.cli    @{words}    timeout=60s
    Should Be Equal As Integers    ${done.rc}    ${rc}    ${done.stdout} ${done.stderr}
    RETURN    ${done.stdout} ${done.stderr}

Host
    [Arguments]    @{words}
    ${done}=    Run Process    ${PYTHON}    ${CURDIR}/manage.py    ${NODE_PORT}    @{words}    timeout=60s
    Should Be Equal As Integers    ${done.rc}    0    ${done.stderr}
    RETURN    ${done.stdout}

Image
    [Arguments]    ${board}
    Trebuchet    image    pack    ${APPLICATION}    --board    ${board}    --version    robot
    ...    -o    ${TEMPDIR}/robot.img
    RETURN    ${TEMPDIR}/robot.img

Should Be Reachable
    ${said}=    Trebuchet    manage    ${NODE}    version
    Should Contain    ${said}    Trebuchet

*** Test Cases ***
Answers Commands
    Should Be Reachable
    ${said}=    Trebuchet    manage    ${NODE}    fly    rc=1
    Should Contain    ${said}    UNKNOWN_COMMAND

Is Configured And Does A Job
    Host    configure    ${ROLE_BASE}
    Wait For Line On Uart    smp: configured: .*, operands 8, results 16    treatAsRegex=true
    ${said}=    Host    work    straight
    Should Be Equal    ${said.strip()}    straight

Refuses An Image For Another Board
    ${image}=    Image    another
    ${said}=    Trebuchet    update    ${NODE}    ${image}    rc=1
    Should Contain    ${said}    WRONG_BOARD
    Wait For Line On Uart    WRONG_BOARD    treatAsRegex=false
    Should Be Reachable

Refuses A Damaged Image
    ${image}=    Image    ${BOARD}
    ${contents}=    Get Binary File    ${image}
    Create Binary File    ${image}    ${{ $contents + b'?' }}
    ${said}=    Trebuchet    update    ${NODE}    ${image}    rc=1
    Should Contain    ${said}    BAD_LENGTH
    Create Binary File    ${image}    ${{ $contents[:-1] + b'?' }}
    ${said}=    Trebuchet    update    ${NODE}    ${image}    rc=1
    Should Contain    ${said}    BAD_CHECKSUM
    Wait For Line On Uart    BAD_CHECKSUM    treatAsRegex=false
    Should Be Reachable

Outlives A Host That Vanishes
    Host    vanish
    Wait For Line On Uart    smp: session [0-9]+: TRUNCATED|smp: .* in the middle    treatAsRegex=true
    Should Be Reachable

Starts The Image That It Was Sent
    ${image}=    Image    ${BOARD}
    Trebuchet    update    ${NODE}    ${image}
    Trebuchet    manage    ${NODE}    reset
    Wait For Line On Uart    start: command
    Wait For Line On Uart    image: application: OK    treatAsRegex=false
    Wait For Line On Uart    firmware: application
    Wait For Line On Uart    ready
    Wait For Line On Uart    image: confirmed: OK    treatAsRegex=false
    ${said}=    Trebuchet    manage    ${NODE}    image
    Should Contain    ${said}    running: application
    Should Contain    ${said}    confirmed
